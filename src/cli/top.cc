// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <iostream>
#include <memory>

#include "base/duration.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/live_parts.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/top_recording.h"
#include "cli/top_terminal.h"
#include "cli/verbs.h"
#include "report/top.h"

namespace headroom::cli {

namespace {

constexpr std::size_t kUsualRows = 40;

struct TopOptions {
  std::vector<std::string> recordings;  // none: what goes on here
  bool once = false, json = false, readonly = false, keep = false;
  std::optional<std::int64_t> pid;
  std::optional<std::size_t> width, height;
  std::string at, window = "60s", filter, kept = "10m";
  std::optional<int> gpu;  // its index
};

Result<screen::State> state_of(const TopOptions& options, const WatchedRecording& watched) {
  screen::State state;
  HR_TRY(state.window, parse_duration(options.window));
  if (state.window == 0) return fail(Errc::kInvalidInput, "--window: no time at all", "write 30s, 5m, 1h");
  if (!options.at.empty()) {
    HR_TRY(const Nanos at, parse_duration(options.at));
    if (at > watched.span())
      return fail(Errc::kInvalidInput, fmt::format("--at {}: the recording ends before", options.at),
                  fmt::format("it covers 0s to {:.3f}s", seconds(watched.span())));
    state.at = at;
  }
  state.filter = options.filter;
  state.readonly = options.readonly;
  return state;
}

// By its index, once it is known which GPUs there are.
Result<void> choose_gpu(const TopOptions& options, const screen::Scene& scene, screen::State& state) {
  if (!options.gpu) return {};
  const auto& devices = scene.explanation.ledger.devices;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].index == *options.gpu) state.gpu = i;
  if (state.gpu) return {};
  return fail(Errc::kInvalidInput, fmt::format("--gpu {}: the recording has no such GPU", *options.gpu),
              "headroom devices lists those of this machine");
}

void put_once(const TopOptions& options, const WatchedRecording& watched, const screen::State& state) {
  const screen::Scene scene = watched.scene();
  if (options.json) {
    for (const std::string& line : scene.lacks) say(line);
    put(report::top_json(scene.explanation, scene.view, scene.behind, scene.now));
    return;
  }
  const report::TextOptions layout = text_options(STDOUT_FILENO);
  const screen::Size size{
      options.width.value_or(std::clamp(layout.width, screen::kSmallest.columns, screen::kLargest.columns)),
      options.height.value_or(kUsualRows)};
  auto lines = screen::picture(scene, state, size, {.colour = layout.colour, .utf8 = layout.utf8}).lines;
  if (scene.trouble.empty()) lines.pop_back();  // the keys: nobody can press one
  put(screen::text_of(lines, layout.colour));
}

// What is painted, until a person has seen enough.
class Top {
 public:
  Top(WatchedRecording& watched, screen::State state, Terminal& terminal, Signals& signals)
      : watched_(watched), state_(std::move(state)), terminal_(terminal), signals_(signals) {}

  int run() {
    for (bool changed = true;;) {
      if (changed)
        terminal_.draw(screen::picture(watched_.scene(), state_, terminal_.size(), terminal_.look()));
      else
        terminal_.draw_head(screen::head(watched_.scene(), state_, terminal_.size(), terminal_.look()));
      screen::Key key;
      switch (terminal_.wait(pause(), signals_, key)) {
        case Terminal::Event::kEnded:
          return kExitInterrupted;
        case Terminal::Event::kKey:
          if (!pressed(key)) return kExitOk;
          changed = true;
          break;
        case Terminal::Event::kResized:
          changed = true;
          break;
        case Terminal::Event::kNothing:
          changed = false;
          break;
      }
      changed |= go_on();
    }
  }

 private:
  // Of what plays: two pictures a second, or as many as take half a core.
  [[nodiscard]] Nanos frame() const { return std::max(kSecond / 2, 2 * watched_.explaining_cost()); }

  [[nodiscard]] Nanos pause() const {
    const Nanos now = boottime_now();
    Nanos look = std::max<Nanos>(0, watched_.next_look() - now);
    if (watched_.grows()) look = std::min(look, kSecond);  // how old the last reading is changes meanwhile
    if (state_.plays) return std::clamp<Nanos>(last_frame_ + frame() - now, 0, look);
    return look;
  }

  // Nobody looks at a time of it, or is about to do something with what is shown.
  [[nodiscard]] bool follows() const {
    return !state_.at && !state_.plays && state_.page == screen::Page::kMain && state_.prompt == screen::Prompt::kNone;
  }

  // False: it is over.
  bool pressed(screen::Key key) {
    const auto before = screen::window_of(state_, watched_.span());
    const bool stood = !state_.plays;
    const screen::Wish wish = screen::press(state_, watched_.scene(), key);
    if (wish.kind == screen::Wish::Kind::kQuit) return false;
    if (wish.kind == screen::Wish::Kind::kSignal) {
      const auto sent = send_signal(watched_.recording(), wish);
      state_.message = sent ? fmt::format("SIG{} was sent to {}", wish.signal, wish.pid) : sent.error().what;
    }
    if (stood && state_.plays) last_frame_ = boottime_now();
    if (screen::window_of(state_, watched_.span()) != before) watched_.explain_window(state_);
    return true;
  }

  // True: there is another picture to be painted.
  bool go_on() {
    const Nanos now = boottime_now();
    bool changed = false, grew = false;
    if (now >= watched_.next_look()) {
      grew = watched_.look_again();
      changed = grew && !state_.at;  // what stands still stays as it is, but for how long the recording is by now
      if (auto message = follows() ? watched_.go_on_with_next() : std::nullopt) {
        if (!message->empty()) state_.gpu.reset(), state_.row = 0;
        state_.message = std::move(*message);
        changed = true;
      }
    }
    if (state_.plays && now - last_frame_ >= frame()) {
      screen::pass(state_, now - last_frame_, watched_.span());
      last_frame_ = now;
      changed = true;
    }
    if (changed) watched_.explain_window(state_);
    return changed || grew;
  }

  WatchedRecording& watched_;
  screen::State state_;
  Terminal& terminal_;
  Signals& signals_;
  Nanos last_frame_ = 0;
};

// Newest first.
std::vector<ShelfEntry> being_recorded() {
  const auto shelf = users_shelf();
  if (!shelf) return {};
  std::vector<ShelfEntry> entries = shelf->list();
  std::erase_if(
      entries, [](const ShelfEntry& entry) { return !entry.summary || entry.summary->state != FileState::kRecording; });
  return entries;
}

bool asked_once(const TopOptions& options) {
  return options.once || options.json || ::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0;
}

// Waiting, until a signal comes: then it is over.
class Patience {
 public:
  explicit Patience(const Signals& signals) : signals_(signals) {}
  bool pause(Nanos time) { return wait_for(-1, time); }
  // False: a signal came before there was anything to read.
  bool wait_for_input() { return wait_for(STDIN_FILENO, -kMillisecond); }
  [[nodiscard]] bool over() const { return over_; }

 private:
  bool wait_for(int input, Nanos time) {
    std::array<pollfd, 2> waits{pollfd{signals_.fd(), POLLIN, 0}, pollfd{input, POLLIN, 0}};
    (void)::poll(waits.data(), waits.size(), static_cast<int>(time / kMillisecond));
    over_ = over_ || waits[0].revents != 0;
    return !over_;
  }

  const Signals& signals_;
  bool over_ = false;
};

// Which of several a person wants to see.
Result<std::string> choose(const std::vector<ShelfEntry>& entries, Patience& patience) {
  std::string text = fmt::format("{} recordings are being made:\n", entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i)
    text +=
        fmt::format("  {}  {}  {}\n", i + 1, entries[i].name, visible(typed_line(entries[i].summary->meta.command)));
  put(text);
  for (;;) {
    put("which one [1]: ");
    std::string line;
    if (!patience.wait_for_input() || !std::getline(std::cin, line))
      return fail(Errc::kInvalidInput, "none was chosen");
    const auto number = trim(line).empty() ? std::optional<std::size_t>(1) : parse_number<std::size_t>(trim(line));
    if (number && *number >= 1 && *number <= entries.size()) return entries[*number - 1].path;
  }
}

// An explanation every other second takes and leaves megabytes: what is large goes back to the system at once, and the
// threads that record have no heaps of their own beside it.
void give_memory_back() {
#ifdef __GLIBC__
  constexpr int kLarge = 128 << 10, kLeft = 256 << 10;
  (void)::mallopt(M_ARENA_MAX, 1);
  (void)::mallopt(M_MMAP_THRESHOLD, kLarge);
  (void)::mallopt(M_TRIM_THRESHOLD, kLeft);
#endif
}

// What goes on here: a recording that is being made, or else this machine.
Result<WatchedRecording> open_now(const TopOptions& options, const ImportOptions& import, Patience& patience) {
  const bool box_wanted = options.pid || options.keep;
  if (const auto entries = box_wanted ? std::vector<ShelfEntry>() : being_recorded(); !entries.empty()) {
    std::string path = entries.front().path;
    if (entries.size() > 1 && asked_once(options)) {
      say(fmt::format("{} recordings are being made: this is {}", entries.size(), entries.front().name),
          "headroom recordings lists them, and headroom top NAME shows another");
    } else if (entries.size() > 1) {
      HR_TRY(path, choose(entries, patience));
    }
    return WatchedRecording::open(path == path_of_recording("last").value_or("") ? "last" : path, import);
  }
  HR_TRY(const Nanos kept, parse_duration(options.kept));
  give_memory_back();
  auto box = WatchedRecording::open_box({.keep = options.keep,
                                         .pid = options.pid,
                                         .pause = [&](Nanos time) { return patience.pause(time); },
                                         .kept = kept},
                                        import);
  if (box || box_wanted || patience.over()) return box;
  auto last = WatchedRecording::open("last", import);
  if (!last) return box;
  say(fmt::format("this machine cannot be watched: {}; this is the last recording", box.error().what),
      box.error().hint);
  return last;
}

// One picture of what has just begun: after some readings, of a job that was found as well.
void let_it_begin(WatchedRecording& watched, const screen::State& state, Patience& patience) {
  constexpr Nanos kEnough = 3 * kSecond, kMost = 12 * kSecond;
  if (!watched.watches_box()) return;
  const Nanos begin = boottime_now();
  while ((watched.span() < kEnough || watched.has_found_job()) && boottime_now() - begin < kMost &&
         patience.pause(kSecond / 4)) {
    (void)watched.look_again();
    watched.explain_window(state);
    if (watched.go_on_with_next()) watched.explain_window(state);
  }
}

Result<int> show(const TopOptions& options, WatchedRecording& watched, Signals& signals, Patience& patience) {
  HR_TRY(screen::State state, state_of(options, watched));
  watched.explain_window(state);
  HR_TRYV(choose_gpu(options, watched.scene(), state));
  const auto once = [&] {
    let_it_begin(watched, state, patience);
    if (patience.over()) return kExitInterrupted;
    put_once(options, watched, state);
    return kExitOk;
  };
  if (asked_once(options)) {
    if (!options.once && !options.json)
      say("standard input and output are no terminal: one picture as text", "headroom top --once says the same");
    return once();
  }
  const report::TextOptions layout = text_options(STDOUT_FILENO);
  auto terminal = Terminal::open({.colour = layout.colour, .utf8 = layout.utf8});
  if (!terminal) {
    say(terminal.error().what, terminal.error().hint);
    return once();
  }
  return Top(watched, std::move(state), **terminal, signals).run();
}

Result<int> top(const TopOptions& options, const ImportOptions& import) {
  if (!options.recordings.empty() && (options.pid || options.keep))
    return fail(Errc::kInvalidInput, "--pid and --keep are about what runs now, and a recording is named",
                "leave out one of them");
  const bool of_recording = !options.recordings.empty() || !options.at.empty();
  HR_TRY(Signals signals, Signals::block({SIGINT, SIGTERM, SIGHUP}));
  Patience patience(signals);
  auto watched =
      of_recording ? WatchedRecording::open(options.recordings, import) : open_now(options, import, patience);
  if (patience.over()) return kExitInterrupted;
  if (!watched) return tl::unexpected(watched.error());
  return show(options, *watched, signals, patience);
}

}  // namespace

Action declare_top(VerbInput input) {
  auto options = std::make_shared<TopOptions>();
  auto& app = input.app;
  app.add_option(
      "RECORDING", options->recordings,
      std::string(kRecordingWords) +
          "; several, or a folder of them: all together; default: what is being recorded, or else this machine");
  app.add_flag("--once", options->once, "one picture, as text");
  app.add_flag("--json", options->json, "one picture, machine-readable, schema headroom.top/1");
  app.add_option("--window", options->window, "how much time the picture is of (default 60s)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--at", options->at, "end of that time, from the recording's start (default: the recording's end)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--gpu", options->gpu, "this GPU alone, by its index")->type_name("INDEX");
  app.add_option("--filter", options->filter, "processes or tasks with this in their name, command or pid; !x: without")
      ->type_name("WORD");
  app.add_option("-p,--pid", options->pid, "of this machine: explain this process and all that it starts")
      ->type_name("PID");
  app.add_flag("--keep", options->keep, "of this machine: keep what is recorded meanwhile, as record does");
  app.add_option("--kept", options->kept)->check(duration_check())->group("");  // nobody who tests waits ten minutes
  app.add_flag("--readonly", options->readonly, "send no signals, whatever key is pressed");
  app.add_option("--width", options->width, "columns of the text (default: the terminal's)")
      ->check(CLI::Range(screen::kSmallest.columns, screen::kLargest.columns))
      ->type_name("COUNT");
  app.add_option("--height", options->height, "rows of the text at most (default 40)")
      ->check(CLI::Range(screen::kSmallest.rows, screen::kLargest.rows))
      ->type_name("COUNT");
  auto import = declare_import_options(app);
  return [options, import]() -> int {
    const auto done = top(*options, *import);
    leave(done ? *done : report_error(done.error()));
  };
}

}  // namespace headroom::cli
