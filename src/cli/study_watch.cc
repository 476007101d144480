// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "live/loop.h"
#include "live/signals.h"
#include "report/study_watch.h"
#include "tune/study_facts.h"

namespace headroom::cli {

namespace {

constexpr Nanos kQuiet = 300 * kSecond;  // without a living trial, it is over

class StudyWatch {
 public:
  StudyWatch(const StudyVerb& verb, Loop& loop, Signals& signals)
      : verb_(verb), loop_(loop), signals_(signals), screen_(STDOUT_FILENO) {}
  int run();

 private:
  [[nodiscard]] Result<StudyReport> look() const;
  void look_again();
  void show(const StudyReport& now, const std::vector<std::string>& changes);
  void clear();
  [[nodiscard]] bool is_over(const StudyReport& now) const;

  const StudyVerb& verb_;
  Loop& loop_;
  Signals& signals_;
  Screen screen_;
  const bool terminal_ = can_repaint(STDOUT_FILENO);
  StudyReport last_;
  Nanos last_life_ = 0;  // Unix time of the last sign of it
  std::string problem_;  // of the last look
  std::vector<std::string> happened_;
  std::size_t lines_ = 0;  // of the picture on the terminal
};

Result<StudyReport> StudyWatch::look() const {
  HR_TRY(const StorageContent content, read_storage({.name = verb_.storage, .study = verb_.study}));
  if (content.studies.empty())
    return fail(Errc::kNotFound, fmt::format("{}: there is no study yet", verb_.told.storage), "start it first");
  if (content.studies.size() > 1) {
    std::vector<std::string> names;
    for (const Study& study : content.studies) names.push_back(typed_word(study.name));
    return fail(Errc::kInvalidInput,
                fmt::format("{}: --watch follows one study, and there are {}", verb_.told.storage, names.size()),
                "name it with --study: " + join(names, ", "));
  }
  HR_TRY(const tune::StudyOptions told, told_about(verb_, content.studies.front()));
  return tune::study_facts(content.studies.front(), told);
}

void StudyWatch::clear() {
  if (lines_ > 0) screen_.put(fmt::format("\r\x1b[{}A\x1b[J", lines_));
  lines_ = 0;
}

void StudyWatch::show(const StudyReport& now, const std::vector<std::string>& changes) {
  const std::string time = clock_time(realtime_now());
  if (!terminal_) {
    if (!changes.empty())
      screen_.put(visible(fmt::format("{} UTC  {}; {}", time, join(changes, ", "), report::watch_rate(now))) + "\n");
    return;
  }
  for (const std::string& change : changes) happened_.push_back(fmt::format("{} UTC  {}", time, change));
  constexpr std::size_t kMost = 100;  // more than a picture shows
  if (happened_.size() > kMost) happened_.erase(happened_.begin(), happened_.end() - kMost);
  if (screen_.waiting()) return;  // the terminal is stopped: no use in painting over what is not there yet
  clear();
  const std::string text =
      report::watch_picture(now, happened_, study_layout(verb_)) + "Ctrl-C ends the watch, not the study.\n";
  screen_.put(text);
  lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Who follows a study runs it: where nothing tells the zone of its times, they are UTC or this machine's local time,
// and whichever makes its end the later one counts. Nothing: that lies in the future.
std::optional<Nanos> last_end(const StudyReport& now) {
  if (!now.end) return std::nullopt;
  Nanos end = *now.end;
  if (const auto zone = offset_of_zone("local", end); !now.clock.known && zone) end = std::max(end, end - *zone);
  return end <= realtime_now() ? std::optional(end) : std::nullopt;
}

bool StudyWatch::is_over(const StudyReport& now) const {
  return !now.live && realtime_now() - std::max(last_life_, last_end(now).value_or(0)) > kQuiet;
}

void StudyWatch::look_again() {
  auto now = look();
  if (!now) {
    clear();
    if (now.error().what != std::exchange(problem_, now.error().what)) say(now.error().what, "looking again");
  } else {
    problem_.clear();
    const auto changes = report::watch_changes(last_, *now);
    if (!changes.empty() || now->live) last_life_ = realtime_now();
    show(*now, changes);
    last_ = std::move(*now);
    if (is_over(last_)) return loop_.stop();
  }
  loop_.after(verb_.watch_every, [this] { look_again(); });
}

int StudyWatch::run() {
  if (const auto watching = loop_.watch(signals_.fd(),
                                        [this] {
                                          if (!signals_.drain().empty()) loop_.stop();
                                        });
      !watching)
    return report_error(watching.error());
  auto first = look();
  if (!first) return report_error(first.error());
  last_ = std::move(*first);
  if (!last_end(last_)) last_life_ = realtime_now();
  if (last_.live) last_life_ = realtime_now();
  show(last_, {fmt::format("{}: {}", last_.name, count_of(last_.trials, "trial"))});
  if (!is_over(last_)) {
    loop_.after(verb_.watch_every, [this] { look_again(); });
    loop_.run();
  }
  screen_.flush();
  return kExitOk;
}

}  // namespace

int watch_study(const StudyVerb& verb) {
  auto signals = Signals::block({SIGINT, SIGTERM, SIGHUP});
  if (!signals) return report_error(signals.error());
  auto loop = Loop::create();
  if (!loop) return report_error(loop.error());
  return StudyWatch(verb, **loop, *signals).run();
}

}  // namespace headroom::cli
