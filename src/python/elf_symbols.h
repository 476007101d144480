// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headroom::python {

// Bytes of a file: false where there are not as many. What they say is believed in nothing.
using ReadAt = std::function<bool(std::uint64_t offset, std::span<std::byte> into)>;

struct ElfSegment {  // PT_LOAD
  std::uint64_t file_offset = 0, address = 0, file_size = 0;
};

struct ElfSymbols {
  std::vector<std::optional<std::uint64_t>> values;  // of the names asked for, before relocation
  std::vector<ElfSegment> segments;
};

// Looks up defined dynamic symbols of a 64-bit x86-64 ELF file, by its hash table. A file that is none, or is made to
// mislead, is kInvalidInput; the work is bounded whatever it holds.
[[nodiscard]] Result<ElfSymbols> find_symbols(const ReadAt& file, std::span<const std::string_view> names);

// What has to be added to addresses of the file, if the part at `file_offset` is mapped at `begin`.
[[nodiscard]] std::optional<std::uint64_t> load_bias(const ElfSymbols& elf, std::uint64_t file_offset,
                                                     std::uint64_t begin);

}  // namespace headroom::python
