// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <memory>
#include <optional>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/finding_looks.h"
#include "cli/output.h"
#include "cli/serve_dashboard.h"
#include "cli/serve_token.h"
#include "cli/verbs.h"
#include "live/signals.h"
#include "serve/listening.h"
#include "serve/page.h"

namespace headroom::cli {

namespace {

constexpr int kUsualPort = 7117;

struct ServeOptions {
  std::vector<std::string> what, hosts;
  std::string address = "127.0.0.1", socket, metrics_token_file;
  int port = kUsualPort;
  bool open = false, dcgm = false;
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
