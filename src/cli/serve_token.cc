// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/child.h"
#include "base/fd.h"
#include "base/filesystem.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "base/time.h"
#include "cli/environment.h"
#include "cli/private_file.h"

namespace headroom::cli {

namespace {

constexpr std::size_t kBytes = 32, kLongestFile = 4096;

Result<std::string> state_folder() {
  HR_TRY(std::string folder, users_state_folder());
  HR_TRYV(make_private_folder(folder));
  return folder;
}

Result<std::string> random_token() {
  std::array<unsigned char, kBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return tl::unexpected(errno_error("ask the kernel for random bytes"));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

struct stat status_of(const Fd& file) {
  struct stat status {};
  ::fstat(file.get(), &status);
  return status;
}

bool is_private(const struct stat& file) {
  return S_ISREG(file.st_mode) && file.st_uid == ::geteuid() && (file.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

// "": there is none.
std::string token_in(const Fd& file) {
  std::array<char, 2 * kBytes + 1> text{};
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  const std::string_view token =
      trim(std::string_view(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))));
  const bool whole = token.size() == 2 * kBytes && token.find_first_not_of("0123456789abcdef") == token.npos;
  return whole ? std::string(token) : "";
}

// Locked, by nobody else but those who share it, and still the one of this name.
Result<Fd> open_token(const std::string& path, bool& alone) {
  for (int tries = 0; tries < 5; ++tries) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!file && errno != ELOOP && errno != EACCES) return tl::unexpected(errno_error("open " + path));
    if (!file || !is_private(status_of(file))) {
      if (::unlink(path.c_str()) != 0) return tl::unexpected(errno_error("remove " + path));
      continue;
    }
    alone = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (!alone) ::flock(file.get(), LOCK_SH);  // who starts holds it for a moment
    struct stat there {};
    const struct stat ours = status_of(file);
    if (::lstat(path.c_str(), &there) == 0 && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev) return file;
  }
  return fail(Errc::kIo, fmt::format("{} is changed again and again by somebody else", path));
}

}  // namespace

Result<ServeToken> ServeToken::take() {
  constexpr Nanos kKept = 60 * kSecond;
  HR_TRY(const std::string folder, state_folder());
  const std::string path = folder + "/serve.token";
  ServeToken token;
  bool alone = false;
  HR_TRY(token.file_, open_token(path, alone));
  token.text_ = token_in(token.file_);
  const Nanos age = realtime_now() - status_of(token.file_).st_mtim.tv_sec * kSecond;
  if (token.text_.empty() || (alone && (age < 0 || age > kKept))) {
    HR_TRY(token.text_, random_token());
    if (::ftruncate(token.file_.get(), 0) != 0) return tl::unexpected(errno_error("write " + path));
    if (const auto written = write_all(token.file_.get(), token.text_ + "\n"); !written)
      return tl::unexpected(within(path, written.error()));
  }
  ::flock(token.file_.get(), LOCK_SH);
  return token;
}

ServeToken::~ServeToken() {
  if (file_) ::futimens(file_.get(), nullptr);  // from now on it is kept for a minute
}

Result<std::string> read_metrics_token(const std::string& path) {
  constexpr std::size_t kShortest = 16;
  HR_TRY(const std::string text, read_regular(path, kLongestFile));
  const std::string_view token = trim(text);
  if (token.size() < kShortest || token.find_first_of(" \t\r\n") != token.npos)
    return fail(Errc::kInvalidInput, fmt::format("--metrics-token-file: {} holds no token", path),
                "one word of 16 characters or more: openssl rand -hex 32");
  return std::string(token);
}

Result<void> open_in_browser(const std::string& url) {
  HR_TRY(const std::string folder, state_folder());
  const std::string path = folder + "/serve.html";
  HR_TRYV(replace_private_file(
      path, fmt::format("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Headroom</title>"
                        "<meta http-equiv=\"refresh\" content=\"0;url={0}\">"
                        "<a href=\"{0}\">Go on to Headroom</a></html>\n",
                        url)));
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  auto child = Child::spawn({.argv = {"xdg-open", path},
                             .standard_in = nothing.get(),
                             .standard_out = nothing.get(),
                             .standard_error = nothing.get(),
                             .own_group = true,
                             .on_drop = OnDrop::kLeave});
  if (!child) return fail(Errc::kUnsupported, "no browser can be opened from here", "open the address yourself");
  return {};
}

}  // namespace headroom::cli
