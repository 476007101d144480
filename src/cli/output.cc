// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <optional>

#include "base/fd.h"
#include "base/human.h"
#include "base/time.h"
#include "base/visible.h"
#include "cli/terminal.h"
#include "report/beginning.h"
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

Result<Fd> locked_file(const std::string& path) {
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!lock) return tl::unexpected(errno_error("open " + path));
  const Nanos until = monotonic_now() + 5 * kSecond;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return tl::unexpected(errno_error("lock " + path));
    if (monotonic_now() > until) return fail(Errc::kBusy, path + " is locked by another process", "try again");
    ::usleep(10'000);
  }
  return lock;
}

Result<void> replace_private_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  ::unlink(temporary.c_str());
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return tl::unexpected(errno_error("create " + temporary));
  auto written = write_all(file.get(), text);
  if (!written) written = tl::unexpected(within(path, written.error()));
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = tl::unexpected(errno_error("create " + path));
  if (!written) ::unlink(temporary.c_str());
  return written;
}

void declare_force(CLI::App& app, bool& force) {
  app.add_flag("--force", force, "replace a file that this verb did not write, too; a recording is never replaced");
}

MayReplace own_json(std::string_view verb, std::string_view schema, bool force) {
  return {
      .writer = fmt::format("headroom {}", verb), .marks = {fmt::format(R"({{"schema":"{}/)", schema)}, .all = force};
}

MayReplace own_document(std::string_view verb, std::string_view format, bool force) {
  if (format == "json") return own_json(verb, fmt::format("headroom.{}", verb), force);
  MayReplace may{.writer = fmt::format("headroom {}", verb), .marks = {}, .all = force};
  const auto add = [&](std::string_view writer) {
    may.marks.push_back(format == "html" ? report::html_beginning(writer) : report::markdown_beginning(writer));
  };
  add(verb);
  if (verb == "report") add("study");  // which a report of a storage is
  return may;
}

namespace {

// Its JSON is a plan, to be verified later.
bool has_json(std::string_view verb) { return verb == "study"; }

Result<std::string> format_of(std::string_view verb, const std::string& path, const std::string& said) {
  if (!said.empty()) return said;
  if (path.empty() || path == "-") return "html";
  for (const auto& [ending, format] :
       {std::pair(".html", "html"), std::pair(".htm", "html"), std::pair(".md", "md"), std::pair(".markdown", "md")})
    if (path.ends_with(ending)) return format;
  const bool json = has_json(verb);
  if (json && path.ends_with(".json")) return "json";
  return fail(
      Errc::kInvalidInput,
      fmt::format("--output: '{}' ends neither with .html nor with .md{}", path, json ? ", nor with .json" : ""),
      json ? "name it report.html, report.md or plan.json" : "name it report.html or report.md");
}

}  // namespace

Result<DocumentFile> document_file(std::string_view verb, const DocumentOptions& options) {
  HR_TRY(const std::string format, format_of(verb, options.path, options.format));
  DocumentFile file{options.path, format, own_document(verb, format, options.force)};
  HR_TRYV(can_write_to(file.path, file.may));
  return file;
}

Result<void> write_document(const DocumentFile& file, const std::string& text) {
  if (file.path == "-") {
    put(text);
    return {};
  }
  HR_TRYV(write_to(file.path, file.may, text));
  say(fmt::format("{}: {} ({})", file.format == "json" ? "plan" : "report", file.path,
                  human_bytes(static_cast<std::int64_t>(text.size()))));
  return {};
}

void declare_document(CLI::App& app, DocumentOptions& options, const std::string& what) {
  app.add_option("-o,--output", options.path, what)->type_name("FILE");
  declare_force(app, options.force);
}

}  // namespace headroom::cli
