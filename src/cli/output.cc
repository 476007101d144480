// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <optional>

#include "base/fd.h"
#include "base/visible.h"
#include "cli/terminal.h"
#include "report/palette.h"

namespace headroom::cli {

namespace {

std::mutex output_mutex;
int output_errno = 0;  // of the first failure

}  // namespace

// Opened the other way round, so that their use still fails; what we start finds them closed, as we did.
void reserve_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

bool put(std::string_view text) {
  const std::lock_guard lock(output_mutex);
  if (write_all(STDOUT_FILENO, text)) return true;
  if (output_errno == 0) output_errno = errno;
  return false;
}

void put_visible(std::string_view text) { put(visible_lines(text)); }

namespace {

bool is_standard_output(const std::string& path) { return path.empty() || path == "-"; }

}  // namespace

Result<void> can_write_to(const std::string& path, const MayReplace& may) {
  return is_standard_output(path) ? Result<void>() : can_write(path, may);
}

Result<void> write_to(const std::string& path, const MayReplace& may,
                      const std::function<Result<void>(const Output&)>& write) {
  if (is_standard_output(path))
    return write([](std::string_view block) -> Result<void> {
      auto written = write_all(STDOUT_FILENO, block);
      if (!written) return tl::unexpected(within("standard output", written.error()));
      return written;
    });
  HR_TRYV(can_write(path, may));
  HR_TRY(OutputFile file, OutputFile::open(path));
  auto written = write([&](std::string_view block) { return write_all(file.fd(), block); });
  if (written) written = file.keep();
  if (!written) return tl::unexpected(within(fmt::format("write {}", path), written.error()));
  return {};
}

Result<void> write_to(const std::string& path, const MayReplace& may, std::string_view text) {
  return write_to(path, may, [&](const Output& out) { return out(text); });
}

int output_code(int code) {
  if (std::fflush(stdout) != 0 && output_errno == 0) output_errno = errno;
  if (output_errno == 0) return code;
  errno = output_errno;
  if (output_errno != EPIPE) say(errno_error("standard output").what);  // a reader that has gone wants no more
  return code == 0 ? 1 : code;
}

void say(std::string_view what, std::string_view next) {
  static const report::TextOptions layout = text_options(STDERR_FILENO);
  std::string text = fmt::format("{} {}\n", report::alarm("headroom:", layout), visible_lines(what));
  if (!next.empty()) text += fmt::format("  {}\n", visible_lines(next));
  (void)write_all(STDERR_FILENO, text);
}

}  // namespace headroom::cli
