// SPDX-License-Identifier: Apache-2.0
#include "cli/hooks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "base/child.h"
#include "base/json.h"
#include "base/strings.h"
#include "cli/config.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "live/hook.h"
#include "live/signals.h"
#include "record/reader.h"
#include "report/notice.h"

namespace headroom::cli {

namespace {

constexpr Nanos kHookHookPatience = 30 * kSecond;  // for all that one option runs; docs/notify.md says it

void complain(std::string_view option, const HookEnd& end, std::size_t left) {
  std::string text =
      fmt::format("{}: {}", option, end.trouble.empty() ? "a signal came" : "the command " + end.trouble);
  if (left > 0) text += fmt::format("; {} more {} not told", left, left == 1 ? "finding is" : "findings are");
  say(text);
}

// Says the first thing that goes wrong, and what ends it. False where a signal came.
bool call(std::string_view option, const std::string& command, const std::vector<std::string>& documents,
          Signals& signals) {
  const Nanos until = boottime_now() + kHookHookPatience;
  bool said = false;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const HookEnd end = run_hook(command, documents[i], until, signals);
    const bool stops = end.out_of_time || end.by_signal;
    const std::size_t left = stops ? documents.size() - i - 1 : 0;
    if (left > 0 || (!end.trouble.empty() && (stops || !said))) complain(option, end, left);
    said = said || !end.trouble.empty();
    if (stops) return !end.by_signal;
  }
  return true;
}

}  // namespace

void declare_hooks(CLI::App& app, Hooks& hooks) {
  app.add_option(
         "--on-end", hooks.on_end,
         "at the end run this shell command, with one JSON document on its stdin: how it went, the headline, the "
         "first finding; 30 s at most; its outcome changes nothing")
      ->type_name("CMD");
  app.add_option(
         "--on-finding", hooks.on_finding,
         "likewise for each finding: once it is sure and has cost a minute, while the work goes on, at once what "
         "stands still, and again when that is over; the others at the end, and those that no longer hold")
      ->type_name("CMD");
  declare_finding_looks(app, hooks.looks);
}

void call_hooks(const Hooks& hooks, const report::EndNotice& end, const Explanation* explanation,
                const std::vector<report::ToldFinding>& told) {
  if (!hooks.any()) return;
  auto signals = Signals::block({SIGINT, SIGTERM, SIGHUP, SIGQUIT});
  if (!signals) return say(fmt::format("--on-end, --on-finding: {}", signals.error().what));
  (void)signals->drain();  // what came before was for the job
  bool go_on = true;
  if (!hooks.on_end.empty()) go_on = call("--on-end", hooks.on_end, {report::to_json(end, explanation)}, *signals);
  if (go_on && !hooks.on_finding.empty() && explanation != nullptr) {
    std::vector<std::string> documents;
    const report::LeftToTell left = report::left_to_tell(told, *explanation);
    for (const std::size_t i : left.fresh)
      documents.push_back(report::finding_notice(end, *explanation, i, report::Told::kAtEnd));
    for (const report::ToldFinding& one : left.withdrawn)
      documents.push_back(report::withdrawn_notice(end, one.finding));
    for (const report::ToldFinding& one : left.over)
      documents.push_back(report::over_notice(end, one.finding, report::Told::kAtEnd));
    (void)call("--on-finding", hooks.on_finding, documents, *signals);
  }
  signals->release();
}

namespace {

using Json = nlohmann::json;

constexpr Nanos kHookPatience = 30 * kSecond;       // for a command, as at the end
constexpr Nanos kEndPatience = 300 * kMillisecond;  // for the process to end by itself
constexpr std::size_t kMostTold = std::size_t{16} << 20;

Result<Fd> file_in_memory(std::string_view text) {
  Fd file(::memfd_create("headroom-findings", MFD_CLOEXEC));
  if (!file) return tl::unexpected(errno_error("make a file in memory"));
  HR_TRYV(write_all(file.get(), text));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return tl::unexpected(errno_error("rewind a file in memory"));
  return file;
}

std::string text_of(int fd) {
  std::string text;
  for (char block[65536]; text.size() < kMostTold;) {
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got <= 0) break;
    text.append(block, static_cast<std::size_t>(got));
  }
  return text;
}

// The process's side.
class FindingWatcher {
 public:
  FindingWatcher(const Json& told, Signals signals)
      : hook_(told.at("hook")),
        path_(told.at("path")),
        every_(told.at("every")),
        findings_({.evidence = told.at("evidence"),
                   .cost = told.at("cost"),
                   .held = told.at("held"),
                   .standstill = told.at("standstill")}),
        signals_(std::move(signals)) {
    end_.verb = told.at("verb");
    end_.command = told.at("command").get<std::vector<std::string>>();
    end_.recording = path_;
  }

  void run() {
    for (;;) {
      const Nanos begin = boottime_now(), cpu = process_cpu_now();
      const auto recording = read_recording(path_, {.leave_out = metrics_not_explained()});
      if (recording && !goes_on(recording->meta)) return;  // the end is told by others
      if (recording && !look(*recording)) return;
      const Nanos pause = std::max(every_, kLookCostParts * (process_cpu_now() - cpu));
      if (ended_before(begin + pause)) return;
    }
  }

 private:
  // False where a signal came.
  bool look(const Recording& recording) {
    const ExplainOptions options{.path = path_, .families = users_families_if_good()};
    const Explanation whole = explain(recording, options);
    const std::optional<Explanation> recent = explain_last_minutes(recording, options);
    const report::LiveFindings::News news = findings_.look(whole, recent ? *recent : whole);
    for (const std::string& key : news.over)
      if (!tell(report::over_notice(end_, told_[key], report::Told::kLive), {{"key", key}, {"over", true}}))
        return false;
    for (const auto& [explanation, finding, key, alarm] : news.fresh) {
      told_[key] = report::finding_text(*explanation, finding);
      if (!tell(report::finding_notice(end_, *explanation, finding, report::Told::kLive),
                {{"key", key}, {"finding", told_[key]}, {"alarm", alarm}}))
        return false;
    }
    return true;
  }

  // `line`: what is known of it at the end. False where a signal came.
  bool tell(const std::string& document, const Json& line) {
    const HookEnd end = run_hook(hook_, document, boottime_now() + kHookPatience, signals_);
    if (end.by_signal && !end.trouble.empty()) return false;
    if (!end.trouble.empty() && !std::exchange(said_, true))
      say(fmt::format("--on-finding: the command {}", end.trouble));
    (void)write_all(STDOUT_FILENO, json_text(line) + "\n");
    return !end.by_signal;
  }

  bool ended_before(Nanos until) {
    for (;;) {
      const Nanos left = until - boottime_now();
      if (left <= 0) return false;
      pollfd watched{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
      ::poll(&watched, 1, static_cast<int>(std::min<Nanos>(left / kMillisecond + 1, 3'600'000)));
      if (!signals_.drain().empty()) return true;
    }
  }

  const std::string hook_, path_;
  const Nanos every_;
  report::LiveFindings findings_;
  std::map<std::string, std::string> told_;  // by key
  report::EndNotice end_;
  Signals signals_;
  bool said_ = false;
};

}  // namespace

FindingWatch::FindingWatch(const Hooks& hooks, std::string verb, std::vector<std::string> command)
    : hooks_(hooks), verb_(std::move(verb)), command_(std::move(command)) {}

void FindingWatch::learn_path(SessionOptions& session) {
  if (hooks_.on_finding.empty() || !session.open_recording) return;
  session.open_recording = [known = known_, open = std::move(session.open_recording)] {
    auto opened = open();
    if (opened) {
      const std::lock_guard lock(known->mutex);
      known->path = opened->path;
    }
    return opened;
  };
}

void FindingWatch::start(Loop& loop, Exclude exclude) {
  if (hooks_.on_finding.empty()) return;
  exclude_ = std::move(exclude);
  loop.after(hooks_.looks.every, [this] { launch(); });
}

void FindingWatch::launch() {
  std::string path;
  {
    const std::lock_guard lock(known_->mutex);
    path = known_->path;
  }
  if (path.empty()) return;  // nothing is recorded
  const report::LiveRule& rule = hooks_.looks.rule;
  const Json told{{"hook", hooks_.on_finding},     {"path", path},      {"every", hooks_.looks.every},
                  {"evidence", rule.evidence},     {"cost", rule.cost}, {"held", rule.held},
                  {"standstill", rule.standstill}, {"verb", verb_},     {"command", command_}};
  auto input = file_in_memory(json_text(told));
  auto output = file_in_memory("");
  if (!input || !output) return;  // at the end all is told
  told_ = std::move(*output);
  parent_ = std::jthread([this, input = std::move(*input)](const std::stop_token& stop) {
    sigset_t none;
    ::sigemptyset(&none);
    std::optional<Child> child;
    exclude_([&]() -> std::int64_t {
      auto spawned = Child::spawn({.argv = {"/proc/self/exe", "finding-watch"},
                                   .set_env = {},
                                   .cwd = "",
                                   .standard_in = input.get(),
                                   .standard_out = told_.get(),
                                   .own_group = true,
                                   .signal_mask = none});
      if (!spawned) return 0;
      child.emplace(std::move(*spawned));
      return child->pid();
    });
    if (!child) return;  // at the end all is told
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
    child->kill(SIGTERM);
    for (const Nanos until = boottime_now() + kEndPatience; !child->try_wait() && boottime_now() < until;)
      ::usleep(5000);
  });
}

std::vector<report::ToldFinding> FindingWatch::stop() {
  std::vector<report::ToldFinding> told;
  if (!parent_.joinable()) return told;
  parent_.request_stop();
  parent_.join();
  ::lseek(told_.get(), 0, SEEK_SET);
  const std::string text = text_of(told_.get());
  for (const std::string_view line : split(text, '\n')) {
    const Json one = parse_json<Json>(line);
    if (!one.is_object()) continue;
    const std::string key = one.value("key", "");
    if (!one.value("over", false)) {
      std::erase_if(told, [&](const report::ToldFinding& before) { return before.key == key; });
      told.push_back({key, one.value("finding", ""), one.value("alarm", false)});
    }
    for (report::ToldFinding& before : told)
      if (before.key == key) before.over = one.value("over", false);
  }
  return told;
}

int finding_watch() {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // Below the job's own, and not below all that compute: on busy cores a look comes after seconds, not after minutes.
  ::setpriority(PRIO_PROCESS, 0, 10);
  // Where memory runs out, it is this process that has to go.
  if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
    (void)write_all(score.get(), "1000");
  const Json told = parse_json<Json>(text_of(STDIN_FILENO));
  if (!told.is_object() || !told.contains("hook")) {
    say("finding-watch is a part of --on-finding, and no verb", "headroom --help lists the verbs");
    return kExitUsage;
  }
  auto signals = Signals::block({SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  if (!signals) return kExitFailed;
  FindingWatcher(told, std::move(*signals)).run();
  return kExitOk;
}

}  // namespace headroom::cli
