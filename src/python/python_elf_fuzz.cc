// SPDX-License-Identifier: Apache-2.0
// A file that says it is a Python. The corpus: shared objects that define _PyRuntime and PyCode_Type, with either kind
// of hash table (g++ -shared -nostdlib -Wl,-z,noseparate-code,--hash-style=gnu|sysv -s).
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/result.h"
#include "python/attach.h"
#include "python/elf_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom::python;
  std::size_t reads = 0;
  const ReadAt file = [&](std::uint64_t offset, std::span<std::byte> into) {
    ++reads;
    if (offset > size || size - offset < into.size()) return false;
    std::memcpy(into.data(), data + offset, into.size());
    return true;
  };
  constexpr std::array<std::string_view, 2> kNames{"_PyRuntime", "PyCode_Type"};
  const auto elf = find_symbols(file, kNames);
  HR_CHECK(reads < 50'000, "the work is bounded");
  if (elf) {
    HR_CHECK(elf->values.size() == kNames.size(), "an answer for every name");
    (void)load_bias(*elf, 0, 0x1000);
  }
  for (const MappedFile& mapped : mapped_files({reinterpret_cast<const char*>(data), size}))
    (void)minor_in_name(mapped.path);
  return 0;
}
