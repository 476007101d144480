// SPDX-License-Identifier: Apache-2.0
//
// The unwinder that g++ 12 links statically looks code up with _dl_find_object, which came with glibc 2.35. This
// definition, seen by this library only, does the same by walking the loaded objects, so that 2.34 is enough.
// It runs when an exception is thrown, never otherwise.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* found;
};

int look_into(dl_phdr_info* object, std::size_t, void* data) {
  const auto& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* code = nullptr;
  const ElfW(Phdr)* frames = nullptr;
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    if (header.p_type == PT_GNU_EH_FRAME) frames = &header;
    if (header.p_type != PT_LOAD) continue;
    const auto offset = search.address - object->dlpi_addr;
    if (offset >= header.p_vaddr && offset - header.p_vaddr < header.p_memsz) code = &header;
  }
  if (code == nullptr || frames == nullptr) return 0;
  const auto at = [&](ElfW(Addr) offset) { return reinterpret_cast<void*>(object->dlpi_addr + offset); };
  *search.found = {};
  search.found->dlfo_map_start = at(code->p_vaddr);
  search.found->dlfo_map_end = at(code->p_vaddr + code->p_memsz);
  search.found->dlfo_eh_frame = at(frames->p_vaddr);
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(address), result};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
