// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace headroom::python {

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

}  // namespace headroom::python
