// SPDX-License-Identifier: Apache-2.0
#include "python/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace headroom::python {

namespace {

constexpr std::size_t kMostSegments = 128, kMostDynamic = 512, kLongestChain = 4096, kLongestSymbol = 64;
constexpr std::uint64_t kFilePage = 4096;

class File {
 public:
  explicit File(const ReadAt& read) : read_(read) {}

  template <class T>
  [[nodiscard]] std::optional<T> at_offset(std::uint64_t offset) const {
    T value{};
    if (!read_(offset, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
  }
  template <class T>
  [[nodiscard]] std::optional<T> at_address(std::uint64_t address) const {
    const auto offset = offset_of(address, sizeof(T));
    return offset ? at_offset<T>(*offset) : std::nullopt;
  }
  [[nodiscard]] bool holds_text(std::uint64_t address, std::string_view text) const {
    std::byte bytes[kLongestSymbol + 1];
    const auto offset = offset_of(address, text.size() + 1);
    if (text.size() > kLongestSymbol || !offset || !read_(*offset, std::span(bytes, text.size() + 1))) return false;
    return std::memcmp(bytes, text.data(), text.size()) == 0 && bytes[text.size()] == std::byte{0};
  }
  bool read_headers();

  std::vector<ElfSegment> segments;
  // From the dynamic section; 0: not there.
  std::uint64_t symbols = 0, strings = 0, strings_size = 0, gnu_hash = 0, hash = 0;

 private:
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address, std::uint64_t size) const {
    for (const ElfSegment& segment : segments) {
      if (address < segment.address || size > segment.file_size) continue;
      if (address - segment.address <= segment.file_size - size) return segment.file_offset + address - segment.address;
    }
    return std::nullopt;
  }
  bool read_dynamic(std::uint64_t offset, std::uint64_t size);
  const ReadAt& read_;
};

bool File::read_headers() {
  const auto header = at_offset<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_X86_64 ||
      header->e_phentsize != sizeof(Elf64_Phdr))
    return false;
  std::optional<Elf64_Phdr> dynamic;
  for (std::size_t i = 0; i < std::min<std::size_t>(header->e_phnum, kMostSegments); ++i) {
    if (header->e_phoff > UINT64_MAX - (i + 1) * sizeof(Elf64_Phdr)) return false;
    const auto segment = at_offset<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return false;
    if (segment->p_type == PT_DYNAMIC) dynamic = segment;
    if (segment->p_type != PT_LOAD) continue;
    if (segment->p_offset > UINT64_MAX - segment->p_filesz || segment->p_vaddr > UINT64_MAX - segment->p_filesz)
      return false;
    segments.push_back({segment->p_offset, segment->p_vaddr, segment->p_filesz});
  }
  return dynamic && read_dynamic(dynamic->p_offset, dynamic->p_filesz);
}

bool File::read_dynamic(std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t count = std::min<std::uint64_t>(size / sizeof(Elf64_Dyn), kMostDynamic);
  if (offset > UINT64_MAX - count * sizeof(Elf64_Dyn)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto entry = at_offset<Elf64_Dyn>(offset + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    const std::uint64_t value = entry->d_un.d_val;
    if (entry->d_tag == DT_SYMTAB) symbols = value;
    if (entry->d_tag == DT_STRTAB) strings = value;
    if (entry->d_tag == DT_STRSZ) strings_size = value;
    if (entry->d_tag == DT_GNU_HASH) gnu_hash = value;
    if (entry->d_tag == DT_HASH) hash = value;
  }
  return symbols != 0 && strings != 0 && (gnu_hash != 0 || hash != 0);
}

// The value of symbol number `index`, if it is the one called `name`. Additions may wrap: what comes out is looked up
// in the segments all the same.
std::optional<std::uint64_t> value_if(const File& file, std::uint64_t index, std::string_view name) {
  const auto symbol = file.at_address<Elf64_Sym>(file.symbols + index * sizeof(Elf64_Sym));
  if (!symbol || symbol->st_shndx == SHN_UNDEF || symbol->st_name >= file.strings_size) return std::nullopt;
  if (!file.holds_text(file.strings + symbol->st_name, name)) return std::nullopt;
  return symbol->st_value;
}

std::uint32_t gnu_hash_of(std::string_view name) {
  constexpr std::uint32_t kStart = 5381, kFactor = 33;
  std::uint32_t hash = kStart;
  for (const char c : name) hash = hash * kFactor + static_cast<unsigned char>(c);
  return hash;
}

// Four words, a Bloom filter, buckets, and a chain of hashes per bucket whose last one has the lowest bit set.
std::optional<std::uint64_t> find_by_gnu_hash(const File& file, std::string_view name) {
  struct Header {
    std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto header = file.at_address<Header>(file.gnu_hash);
  if (!header || header->buckets == 0) return std::nullopt;
  const std::uint32_t hash = gnu_hash_of(name);
  const std::uint64_t buckets = file.gnu_hash + sizeof(Header) + std::uint64_t{header->bloom_words} * 8;
  const std::uint64_t chains = buckets + std::uint64_t{header->buckets} * 4;
  const auto first = file.at_address<std::uint32_t>(buckets + std::uint64_t{hash % header->buckets} * 4);
  if (!first || *first < header->first_symbol) return std::nullopt;
  for (std::size_t i = 0; i < kLongestChain; ++i) {
    const auto link = file.at_address<std::uint32_t>(chains + (std::uint64_t{*first} - header->first_symbol + i) * 4);
    if (!link) return std::nullopt;
    if ((*link | 1U) == (hash | 1U))
      if (const auto value = value_if(file, *first + i, name)) return value;
    if ((*link & 1U) != 0) return std::nullopt;
  }
  return std::nullopt;
}

std::uint32_t sysv_hash_of(std::string_view name) {
  constexpr std::uint32_t kHigh = 0xF0000000U;
  constexpr int kNibble = 4, kBack = 24;
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << kNibble) + static_cast<unsigned char>(c);
    const std::uint32_t high = hash & kHigh;
    hash = (hash ^ (high >> kBack)) & ~high;
  }
  return hash;
}

std::optional<std::uint64_t> find_by_hash(const File& file, std::string_view name) {
  struct Header {
    std::uint32_t buckets, symbols;
  };
  const auto header = file.at_address<Header>(file.hash);
  if (!header || header->buckets == 0) return std::nullopt;
  const std::uint64_t buckets = file.hash + sizeof(Header), chains = buckets + std::uint64_t{header->buckets} * 4;
  auto index = file.at_address<std::uint32_t>(buckets + std::uint64_t{sysv_hash_of(name) % header->buckets} * 4);
  for (std::size_t i = 0; i < kLongestChain && index && *index != 0; ++i) {
    if (const auto value = value_if(file, *index, name)) return value;
    index = file.at_address<std::uint32_t>(chains + std::uint64_t{*index} * 4);
  }
  return std::nullopt;
}

}  // namespace

Result<ElfSymbols> find_symbols(const ReadAt& read, std::span<const std::string_view> names) {
  File file(read);
  if (!file.read_headers()) return fail(Errc::kInvalidInput, "no x86-64 ELF file with dynamic symbols");
  ElfSymbols found;
  for (const std::string_view name : names)
    found.values.push_back(file.gnu_hash != 0 ? find_by_gnu_hash(file, name) : find_by_hash(file, name));
  found.segments = std::move(file.segments);
  return found;
}

std::optional<std::uint64_t> load_bias(const ElfSymbols& elf, std::uint64_t file_offset, std::uint64_t begin) {
  for (const ElfSegment& segment : elf.segments)
    if (segment.file_offset / kFilePage * kFilePage == file_offset)
      return begin - segment.address / kFilePage * kFilePage;
  return std::nullopt;
}

}  // namespace headroom::python
