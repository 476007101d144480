// SPDX-License-Identifier: Apache-2.0
#include "python/layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "python/memory.h"

namespace headroom::python {

namespace {

constexpr std::uint32_t kFlagsSince311 = 48;  // of co_flags; not published

constexpr Layout kUpTo310{.interpreters = 32,
                          .gil_current = 568,
                          .threads = 8,
                          .next = 8,
                          .interpreter = 16,
                          .frame = 24,
                          .thread_id = 176,
                          .previous = 24,
                          .code = 32,
                          .instruction = 96,
                          .frames_are_objects = true,
                          .file = 104,
                          .name = 112,
                          .first_line = 40,
                          .flags = 36,
                          .line_table = 120,
                          .ascii_text = 48,
                          .wide_text = 72};
constexpr Layout k311{.minor = 11,
                      .interpreters = 40,
                      .gil_current = 576,
                      .threads = 16,
                      .next = 8,
                      .interpreter = 16,
                      .frame = 56,
                      .thread_id = 152,
                      .native_id = 160,
                      .cframe_frame = 8,
                      .previous = 48,
                      .code = 32,
                      .instruction = 56,
                      .owner = 69,
                      .first_shim = 3,
                      .stack_top = 64,
                      .entry = 68,
                      .file = 112,
                      .name = 128,
                      .first_line = 72,
                      .flags = kFlagsSince311,
                      .line_table = 136,
                      .instructions = 184,
                      .ascii_text = 48,
                      .wide_text = 72};
constexpr Layout k312{.minor = 12,
                      .interpreters = 40,
                      .threads = 72,
                      .gil = 384,
                      .gil_holder = 8,
                      .gil_locked = 16,
                      .next = 8,
                      .interpreter = 16,
                      .frame = 56,
                      .thread_id = 136,
                      .native_id = 144,
                      .cframe_frame = 0,
                      .previous = 8,
                      .code = 0,
                      .instruction = 56,
                      .owner = 70,
                      .first_shim = 3,
                      .stack_top = 64,
                      .file = 112,
                      .name = 128,
                      .first_line = 68,
                      .flags = kFlagsSince311,
                      .line_table = 136,
                      .instructions = 192,
                      .ascii_text = 40,
                      .wide_text = 56};

// Positions in _Py_DebugOffsets, in words; 3.14 put fields in between.
struct Published {
  std::size_t threads, gil, gil_state, gil_locked, gil_holder;
  std::size_t next, interpreter, frame, thread_id, native_id;
  std::size_t previous, code, instruction, owner;
  std::size_t file, name, line_table, first_line, instructions;
  std::size_t type, type_name;
  std::size_t text_state, text_length, ascii_size;
};
constexpr std::size_t kCookie = 0, kVersion = 1, kFreeThreaded = 2, kInterpretersHead = 5;
constexpr Published kPublished313{.threads = 9,
                                  .gil = 14,
                                  .gil_state = 15,
                                  .gil_locked = 17,
                                  .gil_holder = 18,
                                  .next = 21,
                                  .interpreter = 22,
                                  .frame = 23,
                                  .thread_id = 24,
                                  .native_id = 25,
                                  .previous = 29,
                                  .code = 30,
                                  .instruction = 31,
                                  .owner = 33,
                                  .file = 35,
                                  .name = 37,
                                  .line_table = 38,
                                  .first_line = 39,
                                  .instructions = 43,
                                  .type = 45,
                                  .type_name = 47,
                                  .text_state = 68,
                                  .text_length = 69,
                                  .ascii_size = 70};
constexpr Published kPublished314{.threads = 9,
                                  .gil = 15,
                                  .gil_state = 16,
                                  .gil_locked = 18,
                                  .gil_holder = 19,
                                  .next = 24,
                                  .interpreter = 25,
                                  .frame = 26,
                                  .thread_id = 27,
                                  .native_id = 28,
                                  .previous = 32,
                                  .code = 33,
                                  .instruction = 34,
                                  .owner = 36,
                                  .file = 40,
                                  .name = 42,
                                  .line_table = 43,
                                  .first_line = 44,
                                  .instructions = 48,
                                  .type = 51,
                                  .type_name = 53,
                                  .text_state = 78,
                                  .text_length = 79,
                                  .ascii_size = 80};
static_assert(kPublished314.ascii_size * kWord + kWord <= kDebugOffsetsBytes);

// Offsets in objects are small, those in the runtime and in interpreters (which hold much by value) are not.
constexpr std::uint64_t kLargest = 1 << 20, kLargestInObject = 4096;

}  // namespace

std::size_t Layout::thread_bytes() const {
  return std::max({next, interpreter, frame, thread_id, native_id == kNone ? 0 : native_id}) + kWord;
}
std::size_t Layout::frame_bytes() const {
  return std::max({previous, code, instruction, owner == kNone ? 0 : owner, frames_are_objects ? kTypeOffset : 0}) +
         kWord;
}
std::size_t Layout::code_bytes() const {
  return std::max({kTypeOffset, kCountOffset, file, name, first_line, flags, line_table}) + kWord;
}

std::optional<Layout> known_layout(int minor) {
  constexpr int k38 = 8, k310 = 10, kGilCurrent38 = 1368, kInstructionUpTo39 = 104;
  if (minor == k311.minor) return k311;
  if (minor == k312.minor) return k312;
  if (minor < k38 || minor > k310) return std::nullopt;
  Layout layout = kUpTo310;
  layout.minor = minor;
  if (minor == k38) layout.gil_current = kGilCurrent38;
  if (minor < k310) layout.instruction = kInstructionUpTo39;
  return layout;
}

std::optional<int> minor_of_version(std::uint64_t hex) {
  constexpr std::uint64_t kMajorShift = 24, kMinorShift = 16, kByte = 0xFF, kMostMinor = 99;
  const std::uint64_t minor = hex >> kMinorShift & kByte;
  if (hex >> kMajorShift != 3 || minor > kMostMinor) return std::nullopt;
  return static_cast<int>(minor);
}

Error unknown_version(int minor) {
  if (minor < kOldestMinor)
    return {Errc::kUnsupported,
            fmt::format("Python 3.{} is older than 3.{}, the first whose stacks are read", minor, kOldestMinor), ""};
  return {Errc::kUnsupported,
          fmt::format("Python 3.{} is newer than 3.{}, the last that this program knows", minor, kNewestMinor),
          "a newer Headroom may know it"};
}

Result<Layout> published_layout(std::span<const std::byte> runtime) {
  constexpr std::string_view kName = "xdebugpy";
  if (runtime.size() < kDebugOffsetsBytes || std::memcmp(runtime.data() + kCookie, kName.data(), kName.size()) != 0)
    return fail(Errc::kNotFound, "no offsets are published");
  const auto word = [&](std::size_t index) { return number_at<std::uint64_t>(runtime.data(), index * kWord); };
  const auto minor = minor_of_version(word(kVersion));
  if (!minor) return fail(Errc::kCorrupt, "the published offsets are of no known version");
  constexpr int k313 = 13, k314 = 14;
  if (*minor != k313 && *minor != k314) return tl::unexpected(unknown_version(*minor));
  if (word(kFreeThreaded) != 0)
    return fail(Errc::kUnsupported, fmt::format("Python 3.{} was built without the GIL (free-threaded): its stacks "
                                                "cannot be read yet",
                                                *minor));
  const Published& at = *minor == k313 ? kPublished313 : kPublished314;
  bool sane = true;
  const auto offset = [&](std::size_t index, std::uint64_t most = kLargestInObject, std::uint64_t aligned = kWord) {
    const std::uint64_t value = word(index);
    sane = sane && value <= most && value % aligned == 0;
    return static_cast<std::uint32_t>(std::min(value, kLargest));
  };
  Layout layout{.minor = *minor,
                .interpreters = offset(kInterpretersHead, kLargest),
                .threads = offset(at.threads, kLargest),
                .gil = offset(at.gil, kLargest),
                .next = offset(at.next),
                .interpreter = offset(at.interpreter),
                .frame = offset(at.frame),
                .thread_id = offset(at.thread_id),
                .native_id = offset(at.native_id),
                .previous = offset(at.previous),
                .code = offset(at.code),
                .instruction = offset(at.instruction),
                .owner = offset(at.owner, kLargestInObject, 1),
                .first_shim = 3,
                .file = offset(at.file),
                .name = offset(at.name),
                .first_line = offset(at.first_line, kLargestInObject, sizeof(int)),
                .flags = kFlagsSince311,
                .line_table = offset(at.line_table),
                .instructions = offset(at.instructions),
                .ascii_text = offset(at.ascii_size)};
  const std::uint32_t state = offset(at.gil_state, kLargest), holder = offset(at.gil_holder, kLargest),
                      locked = offset(at.gil_locked, kLargest, sizeof(int));
  layout.gil_holder = holder - state;
  layout.gil_locked = locked - state;
  layout.wide_text = layout.ascii_text + 2 * kWord;
  sane = sane && holder >= state && locked >= state && layout.gil_holder <= kLargestInObject &&
         layout.gil_locked <= kLargestInObject && layout.ascii_text >= kTextStateOffset + sizeof(int) &&
         offset(at.type) == kTypeOffset && offset(at.type_name) == kTypeNameOffset &&
         offset(at.text_length) == kTextLengthOffset && offset(at.text_state) == kTextStateOffset;
  if (!sane) return fail(Errc::kCorrupt, "the published offsets cannot be true");
  return layout;
}

}  // namespace headroom::python
