// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/variant.h"

#include <elf.h>

#include <cstring>
#include <vector>

#include "base/fd.h"

namespace headroom::sim {

namespace {

template <class T>
bool read_at(const std::string& image, std::size_t offset, T& out) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, image.data() + offset, sizeof(T));
  return true;
}

struct Tables {
  Elf64_Shdr symbols, names;
};

Result<Tables> find_tables(const std::string& image) {
  Elf64_Ehdr header;
  if (!read_at(image, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return fail(Errc::kInvalidInput, "not a 64-bit ELF file");
  }
  Tables tables{};
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    if (!read_at(image, header.e_shoff + std::size_t{i} * sizeof(Elf64_Shdr), tables.symbols)) break;
    if (tables.symbols.sh_type != SHT_DYNSYM) continue;
    const auto names = header.e_shoff + std::size_t{tables.symbols.sh_link} * sizeof(Elf64_Shdr);
    if (!read_at(image, names, tables.names) || tables.names.sh_offset + tables.names.sh_size > image.size()) break;
    return tables;
  }
  return fail(Errc::kInvalidInput, "no dynamic symbol table");
}

bool hide(std::string& image, const Tables& tables, const std::string& symbol) {
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= tables.symbols.sh_size; at += sizeof(Elf64_Sym)) {
    Elf64_Sym entry;
    if (!read_at(image, tables.symbols.sh_offset + at, entry)) return false;
    if (entry.st_shndx == SHN_UNDEF || entry.st_name + symbol.size() + 1 > tables.names.sh_size) continue;
    char* const name = image.data() + tables.names.sh_offset + entry.st_name;
    if (std::memcmp(name, symbol.c_str(), symbol.size() + 1) != 0) continue;
    name[0] = '-';
    return true;
  }
  return false;
}

}  // namespace

Result<void> write_library_without(const std::string& from, const std::string& to,
                                   std::span<const std::string> symbols) {
  HR_TRY(std::string image, read_file(from));
  const auto tables = find_tables(image);
  if (!tables) return tl::unexpected<Error>(within(from, tables.error()));
  for (const auto& symbol : symbols) {
    if (!hide(image, *tables, symbol)) {
      return fail(Errc::kInvalidInput, fmt::format("{}: no symbol '{}' to hide", from, symbol),
                  "NVML functions are named as in nvml.h, with their version: nvmlDeviceGetMemoryInfo_v2");
    }
  }
  return write_file(to, image);
}

}  // namespace headroom::sim
