// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace headroom {

namespace {
Errc errc_of(int number) {
  switch (number) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
      return Errc::kNotFound;
    case EACCES:
    case EPERM:
      return Errc::kNoPermission;
    case ENOSPC:
    case EDQUOT:
      return Errc::kNoSpace;
    case EBUSY:
    case EAGAIN:
      return Errc::kBusy;
    case EINVAL:
      return Errc::kInvalidInput;
    default:
      return Errc::kIo;
  }
}
}  // namespace

Error errno_error(std::string_view what, std::string hint) {
  const int number = errno;
  if (hint.empty() && errc_of(number) == Errc::kNoSpace) hint = "make room on that disk, then try again";
  return Error{errc_of(number), fmt::format("{}: {}", what, std::strerror(number)), std::move(hint)};
}

void check_failed(const char* expression, const char* message, const char* file, int line) {
  std::fprintf(stderr, "headroom: internal error: %s:%d: %s (%s)\n", file, line, message, expression);
  std::abort();
}

}  // namespace headroom
