// SPDX-License-Identifier: Apache-2.0
#include "python/code_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/places.h"
#include "stacks/frame.h"

namespace headroom::python {

namespace {

constexpr std::size_t kMostCodes = 20'000;  // of a process; programs that make code all the time are read, uncached
constexpr std::size_t kLongestName = 300, kLongestFile = 1024;
constexpr std::uint64_t kLongestText = 1 << 16;            // no name is: not the object that it should be
constexpr std::uint32_t kResumable = 0x20 | 0x80 | 0x200;  // CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
constexpr std::int32_t kMostLines = 100'000'000;
constexpr std::size_t kLongestTable = std::size_t{1} << 18;  // of a function of ten thousand lines it has a tenth
constexpr std::uint64_t kPair = 2;                           // bytes of an instruction and its argument

void put_utf8(std::string& text, std::uint32_t c) {
  constexpr std::uint32_t kDelete = 0x7F, kTwo = 0x80, kThree = 0x800, kFour = 0x10000, kEnd = 0x110000, kSix = 0x3F;
  const bool surrogate = c >= 0xD800 && c <= 0xDFFF, control = c < ' ' || (c >= kDelete && c < 0xA0);
  const auto byte = [&](std::uint32_t value) { text += static_cast<char>(value); };
  if (surrogate || control || c >= kEnd) {
    text += '?';
  } else if (c < kTwo) {
    byte(c);
  } else if (c < kThree) {
    byte(0xC0 | c >> 6);
    byte(kTwo | (c & kSix));
  } else if (c < kFour) {
    byte(0xE0 | c >> 12);
    byte(kTwo | (c >> 6 & kSix));
    byte(kTwo | (c & kSix));
  } else {
    byte(0xF0 | c >> 18);
    byte(kTwo | (c >> 12 & kSix));
    byte(kTwo | (c >> 6 & kSix));
    byte(kTwo | (c & kSix));
  }
}

}  // namespace

std::optional<std::string> read_text(Snapshot& snapshot, const Layout& layout, Address at, std::size_t most) {
  const std::byte* head = snapshot.need(at, layout.ascii_text);
  if (head == nullptr) return std::nullopt;
  const auto length = number_at<std::uint64_t>(head, kTextLengthOffset);
  // interned: 2 bits, kind: 3 (bytes per character), compact: 1, ascii: 1
  const auto state = number_at<std::uint32_t>(head, kTextStateOffset);
  const std::size_t width = state >> 2 & 7U;
  const bool compact = (state >> 5 & 1U) != 0, ascii = (state >> 6 & 1U) != 0;
  if (length > kLongestText || !compact || (width != 1 && width != 2 && width != 4) || (ascii && width != 1))
    return std::nullopt;
  const std::size_t count = std::min<std::size_t>(length, most);
  std::string text;
  if (count > 0) {
    const std::byte* characters = snapshot.need(at + (ascii ? layout.ascii_text : layout.wide_text), count * width);
    if (characters == nullptr) return std::nullopt;
    text.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      put_utf8(text, width == 1   ? number_at<std::uint8_t>(characters, i)
                     : width == 2 ? number_at<std::uint16_t>(characters, 2 * i)
                                  : number_at<std::uint32_t>(characters, 4 * i));
  }
  if (count < length) text += "...";
  return text;
}

bool CodeTable::trusted(Address at) const {
  const auto known = known_.find(at);
  return known != known_.end() && looks_ - known->second.checked < kTrusted;
}

bool CodeTable::check(Snapshot& snapshot, Address at) {
  const std::byte* code = snapshot.need(at, layout_.code_bytes());
  if (code == nullptr || number_at<Address>(code, kTypeOffset) != code_type_) return false;
  const auto known = known_.find(at);
  Known seen{.name = number_at<Address>(code, layout_.name),
             .file = number_at<Address>(code, layout_.file),
             .line = number_at<std::int32_t>(code, layout_.first_line),
             .resumable = (number_at<std::uint32_t>(code, layout_.flags) & kResumable) != 0,
             .checked = looks_};
  if (known != known_.end() && known->second.name == seen.name && known->second.file == seen.file &&
      known->second.line == seen.line) {
    known->second.checked = looks_;
    return true;
  }
  if (seen.line < 0 || seen.line > kMostLines) return false;
  const auto name = read_text(snapshot, layout_, seen.name, kLongestName);
  const auto file = name ? read_text(snapshot, layout_, seen.file, kLongestFile) : std::nullopt;
  if (!file) return false;
  const std::string text = fmt::format("{} ({}:{})", *name, *file, seen.line);
  seen.id = id_of(text, seen.resumable);
  seen.told =
      texts_[seen.id] == text && (lines_of_ == LinesOf::kAllCode || !stacks::is_library(stacks::frame_of(text)));
  if (known_.size() >= kMostCodes) known_.clear(), line_parts_ = calls_ = 0;
  known_[at] = std::move(seen);
  return true;
}

// The table of lines of the code object at `at`; without data where there is none.
std::span<const std::byte> CodeTable::bytes_of_lines(Snapshot& snapshot, Address at) const {
  const std::byte* code = snapshot.need(at, layout_.code_bytes());
  if (code == nullptr) return {};
  const auto table = number_at<Address>(code, layout_.line_table);
  const std::byte* head = snapshot.need(table, kBytesOffset);
  const auto size = head == nullptr ? kLongestTable + 1 : number_at<std::uint64_t>(head, kCountOffset);
  if (size > kLongestTable) return {};
  const std::byte* bytes = size == 0 ? head : snapshot.need(table + kBytesOffset, size);
  return {bytes, bytes == nullptr ? 0 : size};
}

// A table that is not as long as the code object says is none.
std::optional<LineTable> CodeTable::read_lines(Snapshot& snapshot, Address at, std::int32_t first_line) {
  const std::byte* code = snapshot.need(at, layout_.code_bytes());
  if (code == nullptr) return std::nullopt;
  const auto pairs = number_at<std::uint64_t>(code, kCountOffset);
  const auto bytes = bytes_of_lines(snapshot, at);
  if (bytes.data() == nullptr) return std::nullopt;
  auto lines = LineTable::read(layout_.minor, first_line, bytes);
  const bool counted = layout_.instructions != Layout::kNone;
  if (!lines || (counted && lines->code_bytes() != kPair * pairs)) return std::nullopt;
  if (lines->parts() > kMostLineParts - line_parts_) return std::nullopt;
  line_parts_ += lines->parts();
  return lines;
}

std::uint64_t CodeTable::offset_of(Address at, std::uint64_t instruction) const {
  constexpr int kInPairs = 10;
  return layout_.instructions != Layout::kNone ? instruction - (at + layout_.instructions)
         : layout_.minor == kInPairs           ? kPair * instruction
                                               : instruction;
}

std::optional<CodeId> CodeTable::called(Snapshot& snapshot, Address at, std::uint64_t instruction,
                                        SourceFiles& source) {
  const auto found = known_.find(at);
  const bool has_columns = layout_.instructions != Layout::kNone;  // since 3.11, both
  if (!has_columns || found == known_.end() || !found->second.lines || !found->second.lines->table) return std::nullopt;
  const Known& known = found->second;
  const std::uint64_t offset = offset_of(at, instruction);
  const auto [call, is_new] = known.lines->calls.try_emplace(offset);
  if (!is_new || calls_ >= kMostCalls) return call->second;
  ++calls_;
  const auto extent = LineTable::extent_at(known.line, bytes_of_lines(snapshot, at), offset);
  if (!extent) return std::nullopt;
  const std::string file(stacks::frame_of(texts_[known.id]).file);
  const std::string name = source.call_at(file, *extent);
  if (name.empty()) return std::nullopt;
  const std::string text = stacks::text_of_call(name, file, extent->line);
  if (const CodeId id = id_of(text, false); texts_[id] == text) call->second = id;
  return call->second;
}

std::optional<CodeId> CodeTable::running(Snapshot& snapshot, Address at, std::uint64_t instruction) {
  auto found = known_.find(at);
  if (found == known_.end()) {
    if (!check(snapshot, at)) return std::nullopt;
    found = known_.find(at);
  }
  Known& known = found->second;
  if (!known.told) return known.id;
  if (!known.lines) {
    known.lines = std::make_unique<Lines>();
    known.lines->table = read_lines(snapshot, at, known.line);
  }
  const std::uint64_t offset = offset_of(at, instruction);
  const auto& table = known.lines->table;
  const std::int32_t line = table ? table->line_at(offset).value_or(0) : 0;
  if (line == known.line) return known.id;
  auto& ids = known.lines->ids;
  const auto same = std::find_if(ids.begin(), ids.end(), [&](const auto& one) { return one.first == line; });
  if (same != ids.end()) return same->second;
  const std::string& text = texts_[known.id];
  const std::string_view function = std::string_view(text).substr(0, text.rfind(':'));
  const CodeId id =
      id_of(line == 0 ? fmt::format("{})", function) : fmt::format("{}:{})", function, line), known.resumable);
  ids.emplace_back(line, id);
  return id;
}

CodeId CodeTable::id_of(const std::string& text, bool resumable) {
  CodeId id = 0;
  if (const auto known = ids_.find(text); known != ids_.end()) {
    id = known->second;
  } else if (texts_.size() < kMostTexts && text.size() <= kMostTextBytes - text_bytes_) {
    id = add(text);
    ids_.emplace(texts_.back(), id);
  } else {
    auto& other = other_[resumable ? 1 : 0];
    if (!other) other = add(kOtherCode);
    id = *other;
  }
  if (resumable) resumable_[id] = true;
  return id;
}

CodeId CodeTable::add(std::string_view text) {
  const auto id = static_cast<CodeId>(texts_.size());
  text_bytes_ += texts_.emplace_back(text).size();
  resumable_.push_back(false);
  return id;
}

}  // namespace headroom::python
