// SPDX-License-Identifier: Apache-2.0
// Counts a program's NVML calls: preloaded, it hands out, for every nvml* function that the program looks up, a stub
// that counts and jumps on. With NVML_COUNTS=PREFIX the counts are in the file PREFIX.<pid>, to be read at any time:
// kSlots entries of a 64-bit count and a name of up to 55 characters.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

constexpr std::size_t kSlots = 512;
struct Entry {
  std::uint64_t count;
  char name[56];
};
static_assert(sizeof(Entry) == 64);

}  // namespace

extern "C" {
// Used by the stubs below: stub i adds one at its entry of headroom_count_entries and jumps to headroom_count_real[i].
Entry* headroom_count_entries = nullptr;
void* headroom_count_real[kSlots];
extern const char headroom_count_stubs[];
}

// Every stub is 32 bytes; r10 and r11 are free to use at a call.
asm(R"(
    .text
    .balign 32
    .globl headroom_count_stubs
headroom_count_stubs:
    .set slot, 0
    .rept 512
    .balign 32
    movq headroom_count_entries@GOTPCREL(%rip), %r11
    movq (%r11), %r11
    lock incq 64*slot(%r11)
    movq headroom_count_real@GOTPCREL(%rip), %r11
    jmp *8*slot(%r11)
    .set slot, slot+1
    .endr
)");

namespace {

using Lookup = void* (*)(void*, const char*);

Lookup real_dlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"})
    if (void* found = ::dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Lookup>(found);
  std::fputs("nvml_count: no dlsym to pass on to\n", stderr);
  std::abort();
}

Entry* map_entries() {
  const char* prefix = std::getenv("NVML_COUNTS");
  if (prefix == nullptr) return nullptr;
  char path[512];
  std::snprintf(path, sizeof path, "%s.%d", prefix, static_cast<int>(::getpid()));
  const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (::ftruncate(fd, kSlots * sizeof(Entry)) == 0)
    memory = ::mmap(nullptr, kSlots * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<Entry*>(memory);
}

void* stub_for(const char* name, void* real) {
  static std::mutex mutex;
  static std::size_t used = 0;
  const std::lock_guard lock(mutex);
  if (headroom_count_entries == nullptr) headroom_count_entries = map_entries();
  if (headroom_count_entries == nullptr || used == kSlots) return real;
  const std::size_t slot = used++;
  std::strncpy(headroom_count_entries[slot].name, name, sizeof(Entry::name) - 1);
  headroom_count_real[slot] = real;
  return const_cast<char*>(headroom_count_stubs) + slot * 32;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlsym(void* __restrict handle,
                                                              const char* __restrict name) noexcept {
  static const Lookup real = real_dlsym();
  void* found = real(handle, name);
  if (found == nullptr || std::strncmp(name, "nvml", 4) != 0) return found;
  return stub_for(name, found);
}
