// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "python/elf_symbols.h"

namespace headroom::python {

// What an interpreter is found by, in this order in ElfSymbols::values.
inline constexpr std::array<std::string_view, 4> kPythonSymbols{"_PyRuntime", "PyCode_Type", "PyFrame_Type",
                                                                "Py_Version"};

// Python's symbols in program files. A file is read once, however many processes run it; one that was written to since
// is another one. For one thread.
class KnownFiles {
 public:
  // Null: it is no program that can be read. Good until the next call.
  [[nodiscard]] const ElfSymbols* symbols_of(const Fd& file);
  [[nodiscard]] std::size_t files_read() const { return files_read_; }

 private:
  struct Identity {
    std::uint64_t device = 0, inode = 0;
    std::int64_t size = 0, changed_s = 0, changed_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  struct File {
    Identity identity;
    std::optional<ElfSymbols> symbols;
  };
  std::deque<File> files_;  // the youngest last
  std::size_t files_read_ = 0;
};

}  // namespace headroom::python
