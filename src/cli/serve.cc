// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/child.h"
#include "base/fd.h"
#include "base/filesystem.h"
#include "base/regular_file.h"
#include "base/result.h"
#include "base/strings.h"
#include "base/time.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/growing_recording.h"
#include "cli/output.h"
#include "cli/serve_box.h"
#include "cli/serve_dashboard.h"
#include "cli/verbs.h"
#include "live/signals.h"
#include "serve/listening.h"
#include "serve/page.h"

namespace headroom::cli {

namespace {

// The token of the user's servers: 32 random bytes in the folder of state, readable by the user only. It is the same
// while one of them runs and for a minute after, so that a page that is open survives a restart; then it is another
// one, so that whoever took the port meanwhile has been sent nothing of worth. A file that others could read is
// replaced.
class ServeToken {
 public:
  [[nodiscard]] static Result<ServeToken> take();
  ~ServeToken();
  ServeToken(ServeToken&&) = default;
  ServeToken& operator=(ServeToken&&) = delete;
  ServeToken(const ServeToken&) = delete;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  ServeToken() = default;
  std::string text_;
  Fd file_;  // locked by those who use it
};

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

// The token for scrapes, as `authorization.credentials_file` of Prometheus has it. kInvalidInput: too short to be one.
Result<std::string> read_metrics_token(const std::string& path) {
  constexpr std::size_t kShortest = 16;
  HR_TRY(const std::string text, read_regular(path, kLongestFile));
  const std::string_view token = trim(text);
  if (token.size() < kShortest || token.find_first_of(" \t\r\n") != token.npos)
    return fail(Errc::kInvalidInput, fmt::format("--metrics-token-file: {} holds no token", path),
                "one word of 16 characters or more: openssl rand -hex 32");
  return std::string(token);
}

// Opens `url`, which holds the token, in the user's browser, by a file that only the user can read: on a command line
// everybody could.
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

constexpr int kUsualPort = 7117;

struct ServeOptions {
  std::vector<std::string> what, hosts;
  std::string address = "127.0.0.1", socket, metrics_token_file;
  int port = kUsualPort;
  bool open = false, dcgm = false, watch = false, keep = false;
  FindingLooks looks;
};

Result<serve::Door> door_of(const ServeOptions& options, const std::string& token) {
  serve::Door door{.hosts = serve::hosts_of_loopback(), .token = token};
  if (!options.metrics_token_file.empty()) {
    HR_TRY(door.metrics_token, read_metrics_token(options.metrics_token_file));
  }
  for (const std::string& host : options.hosts) {
    if (!serve::is_host_name(host))
      return fail(Errc::kInvalidInput, fmt::format("--allow-host: '{}' is no name of a host", host),
                  "write it as a browser's address has it, without a port: gpu1.example.org");
    door.hosts.push_back(lower(host));
  }
  return door;
}

std::string address_of(const ServeOptions& options, int port, const std::string& token) {
  const std::string host = options.address == "::1" ? "[::1]" : options.address;
  return fmt::format("http://{}:{}/?token={}", host, port, token);
}

void say_socket(const ServeOptions& options, const std::string& token) {
  print("unix:{}  token {}\n", options.socket, token);
  say("from elsewhere: ssh -L 7117:SOCKET HOST, then the address is",
      fmt::format("http://localhost:7117/?token={}", token));
}

Result<int> run_server(const ServeOptions& options) {
  Catalog catalog;
  for (const std::string& what : options.what) HR_TRYV(catalog.name(what));
  HR_TRY(Library library, Library::create(options.looks.rule));
  HR_TRY(const ServeToken token, ServeToken::take());
  HR_TRY(serve::Door door, door_of(options, token.text()));
  std::optional<serve::UnixListening> socket;
  serve::Listening listening;
  if (options.socket.empty()) {
    HR_TRY(listening, serve::listen_on_loopback(options.address, static_cast<std::uint16_t>(options.port)));
  } else {
    HR_TRY(auto made, serve::UnixListening::open(options.socket));
    listening.fd = made.take();
    socket.emplace(std::move(made));
  }
  HR_TRY(Signals signals, Signals::block({SIGINT, SIGTERM, SIGHUP}));
  HR_TRY(const auto loop, Loop::create());
  HR_TRYV(loop->watch(signals.fd(), [&] { loop->stop(); }));
  std::optional<ServedBox> box;
  if (options.watch) catalog.watch(box.emplace(options.keep));
  {
    Dashboard dashboard(*loop, std::move(catalog), std::move(library), std::move(door), options.dcgm);
    HR_TRYV(dashboard.open(std::move(listening.fd)));
    if (!serve::has_dashboard())
      say("this program was built without its dashboard",
          "JSON and /metrics are served; headroom report writes a page");
    if (options.socket.empty()) {
      const std::string address = address_of(options, listening.port, token.text());
      print("{}\n", address);
      if (options.open)
        if (const auto opened = open_in_browser(address); !opened) say(opened.error().what, opened.error().hint);
    } else {
      say_socket(options, token.text());
    }
    loop->run();
    signals.release();  // what is being explained may take a moment: a second signal does not wait for it
  }
  return kExitOk;
}

}  // namespace

Action declare_serve(VerbInput input) {
  auto options = std::make_shared<ServeOptions>();
  auto& app = input.app;
  app.add_option(
      "WHAT", options->what,
      "shown beside what headroom recordings lists: recordings, logs, folders of batches, storages of Optuna");
  auto* port = app.add_option("--port", options->port, "TCP port of this machine (default 7117; 0: any that is free)")
                   ->check(CLI::Range(0, 65535))
                   ->type_name("PORT");
  auto* address = app.add_option("--address", options->address, "127.0.0.1 (default) or ::1")
                      ->check(CLI::IsMember({"127.0.0.1", "::1"}))
                      ->type_name("ADDRESS");
  app.add_option("--unix", options->socket, "a Unix socket that you alone may connect to, instead of a port")
      ->type_name("PATH")
      ->excludes(port)
      ->excludes(address);
  app.add_option("--allow-host", options->hosts,
                 "a further name by which browsers may call it, as behind a reverse proxy; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  auto* watch = app.add_flag("--watch", options->watch,
                             "record this machine meanwhile, into memory, as headroom top does: its GPUs, and the job "
                             "that is on them");
  app.add_flag("--keep", options->keep, "of --watch: keep what is recorded")->needs(watch);
  app.add_flag("--open", options->open, "open it in the browser");
  app.add_option("--metrics-token-file", options->metrics_token_file,
                 "a file with a token that opens /metrics and nothing else: for credentials_file of Prometheus")
      ->type_name("FILE");
  app.add_flag("--dcgm", options->dcgm, "serve /metrics/dcgm, too: readings under the names of dcgm-exporter");
  declare_finding_looks(app, options->looks);
  return [options] {
    const auto done = run_server(*options);
    return done ? *done : report_error(done.error());
  };
}

}  // namespace headroom::cli
