// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace headroom {

// What a caller may branch on; the words are in Error.
enum class Errc { kInvalidInput, kNotFound, kNoPermission, kNoSpace, kUnsupported, kBusy, kIo, kCorrupt };

// `what` says what failed and where, lower-case, without a full stop; `hint` is the next step for a person (may be "").
struct Error {
  Errc code = Errc::kIo;
  std::string what;
  std::string hint;
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string what, std::string hint = "") {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(hint)});
}

// The same error, seen from one level further up: "recording run.hrec: open: Permission denied".
[[nodiscard]] inline Error within(std::string_view context, Error error) {
  error.what = fmt::format("{}: {}", context, error.what);
  return error;
}

// An Error for the current errno: "open /x: No such file or directory".
[[nodiscard]] Error errno_error(std::string_view what, std::string hint = "");

[[noreturn]] void check_failed(const char* expression, const char* message, const char* file, int line);

}  // namespace headroom

// A bug, not an error: aborts with its place in all builds.
#define HR_CHECK(condition, message)                                                     \
  do {                                                                                   \
    if (!(condition)) ::headroom::check_failed(#condition, message, __FILE__, __LINE__); \
  } while (false)

#define HR_CONCAT_(a, b) a##b
#define HR_CONCAT(a, b) HR_CONCAT_(a, b)

// HR_TRY(auto fd, open_read(path));  declares fd, or returns the error to the caller.
#define HR_TRY(declaration, expression) HR_TRY_(declaration, expression, HR_CONCAT(hr_try_, __LINE__))
#define HR_TRY_(declaration, expression, temporary)                                       \
  auto temporary = (expression);                                                          \
  if (!temporary) return tl::unexpected<::headroom::Error>(std::move(temporary).error()); \
  declaration = std::move(*temporary)

// HR_TRYV(write_all(fd, text));  for Result<void>.
#define HR_TRYV(expression)                                                                                          \
  do {                                                                                                               \
    if (auto hr_tryv = (expression); !hr_tryv) return tl::unexpected<::headroom::Error>(std::move(hr_tryv).error()); \
  } while (false)
