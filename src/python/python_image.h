// SPDX-License-Identifier: Apache-2.0
// The memory of an interpreter, made by hand: for tests.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "python/walker.h"

namespace headroom::python {

// Bytes from kBase on, in whole pages; everything else is not there.
class ImageMemory : public Memory {
 public:
  static constexpr Address kBase = 0x10000;
  std::size_t read(std::span<const Region> regions, std::byte* into) override {
    const std::size_t there = (bytes.size() + kPage - 1) / kPage * kPage;
    std::size_t done = 0;
    for (const Region& region : regions) {
      const Address from = region.at - kBase;
      if (region.at < kBase || from > there || there - from < region.size) return done;
      std::memset(into + done, 0, region.size);
      if (from < bytes.size())
        std::memcpy(into + done, bytes.data() + from, std::min<std::size_t>(region.size, bytes.size() - from));
      done += region.size;
    }
    return done;
  }
  std::vector<std::byte> bytes;
};

class PythonImage {
 public:
  static constexpr std::size_t kRuntimeBytes = 2048;  // PyCode_Type lies behind
  explicit PythonImage(const Layout& layout) {
    target.layout = layout;
    target.runtime = room(kRuntimeBytes);
    target.code_type = room(64);
    target.frame_type = room(64);
    interpreter = room(std::max<std::size_t>(layout.threads + 8, layout.gil == Layout::kNone ? 0 : layout.gil + 8));
    put(target.runtime + layout.interpreters, interpreter);
    put(target.runtime + layout.interpreters + 8, interpreter);
    if (layout.gil == Layout::kNone) return;
    gil = room(64);
    put(interpreter + layout.gil, gil);
  }
  Address room(std::size_t size) {
    const Address at = ImageMemory::kBase + memory.bytes.size();
    memory.bytes.resize(memory.bytes.size() + (size + 15) / 16 * 16);
    return at;
  }
  template <class T>
  void put(Address at, T value) {
    std::memcpy(memory.bytes.data() + (at - ImageMemory::kBase), &value, sizeof value);
  }
  Address text(std::string_view ascii) {
    const Address at = room(target.layout.ascii_text + ascii.size() + 1);
    constexpr std::uint32_t kCompactAscii = 1U << 2 | 1U << 5 | 1U << 6;
    put<std::uint64_t>(at + kTextLengthOffset, ascii.size());
    put(at + kTextStateOffset, kCompactAscii);
    std::memcpy(memory.bytes.data() + (at + target.layout.ascii_text - ImageMemory::kBase), ascii.data(), ascii.size());
    return at;
  }
  Address code(std::string_view name, std::int32_t line = 1) {
    const Layout& layout = target.layout;
    const Address at = room(layout.code_bytes());
    put(at + kTypeOffset, target.code_type);
    put(at + layout.name, text(name));
    put(at + layout.file, text("t.py"));
    put(at + layout.first_line, line);
    // One pair of code, of its first line: "on the same line, two columns", "two bytes of code", or no word.
    const bool entries = layout.instructions != Layout::kNone, ranges = layout.minor == 10;
    set_lines(at,
              entries  ? std::string_view("\xD0\0\0", 3)
              : ranges ? std::string_view("\2\0", 2)
                       : std::string_view(),
              1);
    return at;
  }
  // `table` is that of a code object of so many pairs of bytes.
  void set_lines(Address code_at, std::string_view table, std::uint64_t pairs) {
    const Address at = room(kBytesOffset + table.size());
    put<std::uint64_t>(at + kCountOffset, table.size());
    if (!table.empty())
      std::memcpy(memory.bytes.data() + (at + kBytesOffset - ImageMemory::kBase), table.data(), table.size());
    put(code_at + target.layout.line_table, at);
    if (target.layout.instructions != Layout::kNone) put(code_at + kCountOffset, pairs);
  }
  Address frame(Address code_at, Address previous, std::uint8_t owner = 0) {
    const Layout& layout = target.layout;
    const Address at = room(layout.frame_bytes());
    if (layout.frames_are_objects) put(at + kTypeOffset, target.frame_type);
    put(at + layout.code, code_at);
    put(at + layout.previous, previous);
    if (layout.instructions != Layout::kNone) put(at + layout.instruction, code_at + layout.instructions);
    if (layout.owner != Layout::kNone) put(at + layout.owner, owner);
    return at;
  }
  // Its innermost frame is `frame`; it becomes the newest.
  Address thread(Address frame_at, std::uint64_t native_id) {
    const Layout& layout = target.layout;
    const Address at = room(layout.thread_bytes());
    put(at + layout.next, newest);
    put(at + layout.interpreter, interpreter);
    put(at + layout.thread_id, native_id);
    if (layout.native_id != Layout::kNone) put(at + layout.native_id, native_id);
    if (layout.cframe_frame != Layout::kNone) put(at + layout.frame, room(32));
    set_top(at, frame_at);
    put(interpreter + layout.threads, at);
    return newest = at;
  }
  void set_top(Address thread_at, Address frame_at) {
    const Layout& layout = target.layout;
    Address slot = thread_at + layout.frame;
    if (layout.cframe_frame != Layout::kNone) {
      std::memcpy(&slot, memory.bytes.data() + (slot - ImageMemory::kBase), sizeof slot);
      slot += layout.cframe_frame;
    }
    put(slot, frame_at);
  }

  Target target;
  Address interpreter = 0, gil = 0, newest = 0;
  ImageMemory memory;
};

// As 3.14 publishes it.
inline Layout layout_314() {
  Layout layout = *known_layout(12);
  layout.minor = 14;
  layout.interpreters = 808;
  layout.threads = 7344;
  layout.gil = 16;
  layout.frame = 72;
  layout.cframe_frame = Layout::kNone;
  layout.thread_id = 152;
  layout.native_id = 160;
  layout.owner = 74;
  return layout;
}

}  // namespace headroom::python
