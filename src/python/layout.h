// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"

namespace headroom::python {

// Where CPython keeps what leads to the stacks, in bytes. Up to 3.12 from each version's own headers; 3.13 and newer
// publish theirs at run time (_Py_DebugOffsets). x86-64 builds with a GIL; the same for static builds and libpython.
struct Layout {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  int minor = 0;  // of 3.<minor>
  // _PyRuntimeState: the list of interpreters, newest first; the main one's address follows the head.
  std::uint32_t interpreters = 0;
  std::uint32_t gil_current = kNone;  // up to 3.11: the thread state that holds the GIL
  // PyInterpreterState
  std::uint32_t threads = 0;  // head of the list of thread states, newest first
  std::uint32_t gil = kNone;  // 3.12 and newer: address of the GIL
  std::uint32_t gil_holder = 0, gil_locked = 0;
  // PyThreadState
  std::uint32_t next = 0;
  std::uint32_t interpreter = 0;
  std::uint32_t frame = 0;
  std::uint32_t thread_id = 0;         // pthread_self()
  std::uint32_t native_id = kNone;     // gettid(), since 3.11
  std::uint32_t cframe_frame = kNone;  // 3.11, 3.12: `frame` is a _PyCFrame, and the frame is there
  // The frame
  std::uint32_t previous = 0, code = 0;
  std::uint32_t instruction = 0;    // what it is at: up to 3.10 a number (of bytes; in 3.10 of pairs), then an address
  std::uint32_t owner = kNone;      // since 3.11: who owns the frame's memory
  std::uint8_t first_shim = 0xFF;   // owners from here on: no function of Python's
  bool frames_are_objects = false;  // up to 3.10: of type PyFrame_Type, on the heap
  // 3.11, 3.12: how much lies on the frame's stack while it calls Python without C in between; negative while it runs
  std::uint32_t stack_top = kNone;
  std::uint32_t entry = kNone;  // 3.11: not 0 if C called it (3.12 puts a frame of its own in between)
  // PyCodeObject
  std::uint32_t file = 0, name = 0, first_line = 0;  // `name` is the qualified one since 3.11
  std::uint32_t flags = 0;
  std::uint32_t line_table = 0;        // address of the bytes that LineTable reads
  std::uint32_t instructions = kNone;  // since 3.11: where they begin in it
  // PyUnicodeObject: where the characters of compact strings begin
  std::uint32_t ascii_text = 0, wide_text = 0;

  [[nodiscard]] std::size_t thread_bytes() const;  // to read from the beginning of each
  [[nodiscard]] std::size_t frame_bytes() const;
  [[nodiscard]] std::size_t code_bytes() const;
  bool operator==(const Layout&) const = default;
};

inline constexpr int kOldestMinor = 8, kNewestMinor = 14;
inline constexpr std::size_t kWord = 8;               // bytes of a pointer
inline constexpr std::uint32_t kTypeOffset = 8;       // of ob_type in every object
inline constexpr std::uint32_t kTypeNameOffset = 24;  // of tp_name in a type
inline constexpr std::uint32_t kTextLengthOffset = 16, kTextStateOffset = 32;
inline constexpr std::uint32_t kCountOffset = 16;  // of what varies in number: the bytes of bytes, the pairs of code
inline constexpr std::uint32_t kBytesOffset = 32;  // where the bytes of bytes begin

// For versions that do not publish it: 8 to 12.
[[nodiscard]] std::optional<Layout> known_layout(int minor);

// What the first bytes of _PyRuntime say, from 3.13 on. kNotFound: nothing is published there; kUnsupported: a version
// that is not known, or a build without the GIL; kCorrupt: offsets that cannot be true.
inline constexpr std::size_t kDebugOffsetsBytes = 648;
[[nodiscard]] Result<Layout> published_layout(std::span<const std::byte> runtime);

// "3.11" of PY_VERSION_HEX; nothing unless it is a plausible one of Python 3.
[[nodiscard]] std::optional<int> minor_of_version(std::uint64_t hex);
[[nodiscard]] Error unknown_version(int minor);

}  // namespace headroom::python
