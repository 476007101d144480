// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "python/known_files.h"
#include "python/walker.h"

namespace headroom::python {

// Whether this process may read the memory of other ones of the same user, as far as can be told without one at hand.
enum class Whose : std::uint8_t {
  kOwn,     // what it started itself: `headroom run`
  kOthers,  // processes that run already: `headroom record --pid`
};
[[nodiscard]] Result<void> can_read_stacks(Whose whose = Whose::kOwn);

// kernel.yama.ptrace_scope: 0 same user, 1 own descendants, 2 administrators, 3 nobody. Nothing without Yama.
[[nodiscard]] std::optional<int> ptrace_scope(const std::string& root = "");

// Why the memory of `pid` may not be read, given that it may not.
[[nodiscard]] Error denied(std::int64_t pid, const std::string& root = "");

// A file that is mapped into a process. The path points into the text and is the process's own.
struct MappedFile {
  std::string_view path;
  std::uint64_t begin = 0;   // of its first mapping
  std::uint64_t offset = 0;  // in the file
  bool executable = false;   // any part of it
};

// /proc/<pid>/maps: every file once, in order of its first mapping. Lines that are not understood are left out.
[[nodiscard]] std::vector<MappedFile> mapped_files(std::string_view maps);

// Whether Python may be in there, by the file's name alone.
[[nodiscard]] bool may_hold_python(std::string_view path);
// "3.11" in libpython3.11.so.1.0, python3.11 and _heapq.cpython-311-x86_64-linux-gnu.so: 11. 0 for Python 2; -1: none.
[[nodiscard]] int minor_in_name(std::string_view path);

// Finds the interpreter in a process: by the dynamic symbols of the file that holds it, as the process itself sees that
// file (/proc/<pid>/root), and where it is mapped. Errors as PythonProcess::attach says.
[[nodiscard]] Result<Target> find_python(std::int64_t pid, ProcessMemory& memory, KnownFiles& known);

}  // namespace headroom::python
