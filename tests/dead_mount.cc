// SPDX-License-Identifier: Apache-2.0
// Loaded before libc (LD_PRELOAD): what lies below $DEAD_MOUNT behaves like a network mount whose server is gone. Every
// call with such a path sleeps for ever. The headers that declare these functions are left out: they say more of them
// than a second definition could repeat.
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

extern "C" int pause();

namespace {

void wait_if_dead(const char* path) {
  const char* dead = std::getenv("DEAD_MOUNT");
  if (dead != nullptr && path != nullptr && std::string_view(path).starts_with(dead))
    while (true) ::pause();
}

// The same function of the next library that has it, which is libc.
template <class Result, class... Arguments>
Result next(const char* name, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(::dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace

extern "C" {
#define HR_OF_TWO(name)                      \
  int name(const char* path, void* second) { \
    wait_if_dead(path);                      \
    return next<int>(#name, path, second);   \
  }
#define HR_OF_A_MODE(name)                        \
  int name(const char* path, unsigned int mode) { \
    wait_if_dead(path);                           \
    return next<int>(#name, path, mode);          \
  }
#define HR_OPEN(name)                                        \
  int name(const char* path, int flags, unsigned int mode) { \
    wait_if_dead(path);                                      \
    return next<int>(#name, path, flags, mode);              \
  }
#define HR_OPEN_AT(name)                                             \
  int name(int at, const char* path, int flags, unsigned int mode) { \
    wait_if_dead(path);                                              \
    return next<int>(#name, at, path, flags, mode);                  \
  }
HR_OF_TWO(stat)
HR_OF_TWO(lstat)
HR_OF_TWO(stat64)
HR_OF_TWO(lstat64)
HR_OF_TWO(statfs)
HR_OF_TWO(statfs64)
HR_OF_TWO(statvfs)
HR_OF_TWO(statvfs64)
HR_OF_A_MODE(access)
HR_OF_A_MODE(mkdir)
HR_OPEN(open)
HR_OPEN(open64)
HR_OPEN_AT(openat)
HR_OPEN_AT(openat64)
void* opendir(const char* path) {
  wait_if_dead(path);
  return next<void*>("opendir", path);
}
}
