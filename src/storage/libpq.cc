// SPDX-License-Identifier: Apache-2.0
#include "storage/libpq.h"

#include <dlfcn.h>

namespace headroom {

Result<Libpq> Libpq::load(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(Errc::kNotFound, fmt::format("{}, PostgreSQL's client library, is not installed here", path),
                "install it: apt install libpq5, dnf install libpq, or conda install libpq and its lib folder in "
                "LD_LIBRARY_PATH");
  Libpq libpq;
  libpq.library = std::shared_ptr<void>(library, [](void* handle) { ::dlclose(handle); });
#define HEADROOM_LIBPQ_LOAD(member, result, arguments, name)                       \
  libpq.member = reinterpret_cast<decltype(libpq.member)>(::dlsym(library, name)); \
  if (libpq.member == nullptr) return fail(Errc::kUnsupported, fmt::format("{} has no {}", path, name));
  HEADROOM_LIBPQ_FUNCTIONS(HEADROOM_LIBPQ_LOAD)
#undef HEADROOM_LIBPQ_LOAD
  return libpq;
}

}  // namespace headroom
