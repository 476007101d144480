// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/duration.h"
#include "base/human.h"
#include "base/strings.h"
#include "screen/scene.h"

namespace headroom::screen {

namespace {

using Kind = Key::Kind;
constexpr std::size_t kLongestTyped = 60;
constexpr std::ptrdiff_t kPageOfRows = 10, kTurnOfWheel = 3;
constexpr Nanos kShortestWindow = 5 * kSecond, kLongestWindow = 24 * 3600 * kSecond;
constexpr int kFastest = 64;

Nanos span_of(const Scene& scene) { return scene.end - scene.begin; }

// To an instant, as an offset; the picture stands still there.
void go(State& state, const Scene& scene, Nanos to) {
  state.at = std::clamp<Nanos>(to, 0, span_of(scene));
  state.plays = false;
}

Nanos now_of(const State& state, const Scene& scene) { return state.at.value_or(span_of(scene)); }

// What grows is followed or stands still; what has ended plays or stands still.
void toggle_pause(State& state, const Scene& scene) {
  if (scene.view.goes_on) {
    if (state.at)
      state.at.reset();
    else
      go(state, scene, span_of(scene));
    return;
  }
  state.plays = !state.plays;
  if (state.plays && now_of(state, scene) >= span_of(scene)) state.at = std::min(state.window, span_of(scene));
}

void step_gpu(State& state, const Scene& scene, bool next) {
  const std::size_t n = scene.explanation.ledger.devices.size();
  const std::size_t now = state.gpu ? *state.gpu + 1 : 0;  // 0: all
  const std::size_t then = (now + (next ? 1 : n)) % (n + 1);
  state.gpu = then == 0 ? std::nullopt : std::optional(then - 1);
  state.row = 0;
}

void move(State& state, const Scene& scene, std::ptrdiff_t by) {
  std::size_t& place = state.page == Page::kMain ? state.row : state.scrolled;
  const auto last = state.page == Page::kMain ? static_cast<std::ptrdiff_t>(rows_of(scene, state).size()) - 1 : 10'000;
  place = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(place) + by, 0, std::max<std::ptrdiff_t>(0, last)));
}

void open_page(State& state, Page page) {
  state.page = state.page == page ? Page::kMain : page;
  state.scrolled = 0;
}

void ask(State& state, Prompt prompt) {
  state.prompt = prompt;
  state.typed = prompt == Prompt::kFilter ? state.filter : "";
}

void ask_for_signal(State& state, const Scene& scene) {
  const std::vector<Row> rows = rows_of(scene, state);
  if (state.readonly)
    state.message = "--readonly: no signals from here";
  else if (!scene.view.goes_on || state.at)
    state.message = "this is the past: signals go to processes of a live picture (space, or e)";
  else if (!state.shows(Box::kTable))
    state.message = "no process is shown: P shows them";
  else if (state.row >= rows.size() || rows[state.row].pid <= 0 || !rows[state.row].lives)
    state.message = "no living process is chosen";
  else if (!rows[state.row].in_job)
    state.message = fmt::format("{} is no process of this recording's job: no signals from here", rows[state.row].pid);
  else {
    state.prompt = Prompt::kSignal;
    state.target = rows[state.row];
  }
}

Wish answer_signal(State& state, Key key) {
  state.prompt = Prompt::kNone;
  const std::string_view name = key.kind != Kind::kLetter ? ""
                                : key.letter == 't'       ? "TERM"
                                : key.letter == 'i'       ? "INT"
                                : key.letter == 'K'       ? "KILL"
                                                          : "";
  if (!name.empty()) return {Wish::Kind::kSignal, state.target.pid, state.target.begin, std::string(name)};
  state.message = "no signal was sent";
  return {};
}

void answer_sort(State& state, Key key) {
  state.prompt = Prompt::kNone;
  switch (key.kind == Kind::kLetter ? key.letter : 0) {
    case 'm':
      state.sort = Sort::kMemory;
      break;
    case 'c':
      state.sort = Sort::kCpu;
      break;
    case 'r':
      state.sort = Sort::kResident;
      break;
    case 't':
      state.sort = Sort::kTime;
      break;
    case 'p':
      state.sort = Sort::kPid;
      break;
    case 'n':
      state.sort = Sort::kName;
      break;
    case 'u':
      state.sort = Sort::kUsual;
      break;
    default:
      return;
  }
  state.row = 0;
}

// A jump of so long; without a number, of one window.
void jump(State& state, const Scene& scene, bool forward) {
  Nanos by = state.window;
  if (!state.typed.empty()) {
    const auto typed = parse_duration(state.typed);
    if (!typed) {
      state.message = fmt::format("'{}' is no time: write 30s, 3m, 1h", state.typed);
      return;
    }
    by = std::min(*typed, span_of(scene));
  }
  go(state, scene, now_of(state, scene) + (forward ? by : -by));
}

void type(State& state, const Scene& scene, Key key) {
  if (key.kind == Kind::kLetter && key.letter >= ' ' && state.typed.size() < kLongestTyped) state.typed += key.letter;
  if (key.kind == Kind::kBackspace && !state.typed.empty()) state.typed.pop_back();
  const bool done = key.kind == Kind::kEnter, left = key.kind == Kind::kEscape;
  if (state.prompt == Prompt::kFilter && !left) {  // shown as it is typed
    state.filter = state.typed;
    state.row = 0;
  }
  if (state.prompt == Prompt::kFilter && left) state.filter.clear();
  if (done && state.prompt != Prompt::kFilter) jump(state, scene, state.prompt == Prompt::kForward);
  if (done || left) state.prompt = Prompt::kNone;
}

void leave(State& state) {
  if (state.page != Page::kMain)
    state.page = Page::kMain;
  else if (state.detail)
    state.detail = false;
  else if (!state.filter.empty())
    state.filter.clear();
  else
    state.gpu.reset();
}

struct BoxKey {
  char letter;
  Box box;
  std::string_view what;
};
constexpr std::array kBoxKeys{
    BoxKey{'B', Box::kBars, "the ledger's bars"},
    BoxKey{'S', Box::kStrips, "accounts over time"},
    BoxKey{'P', Box::kTable, "the table"},
    BoxKey{'F', Box::kFinding, "the finding"},
};
static_assert(kBoxKeys.size() == kBoxes);

void toggle_box(State& state, char c) {
  const auto* const key =
      std::find_if(kBoxKeys.begin(), kBoxKeys.end(), [&](const BoxKey& known) { return known.letter == c; });
  if (key == kBoxKeys.end()) return;
  bool& hidden = state.hidden[static_cast<std::size_t>(key->box)];
  hidden = !hidden;
  if (hidden) state.message = fmt::format("hidden: {}; {} shows it again", key->what, c);
}

// The first is 1; the one that is shown alone, once more: all.
void choose_gpu(State& state, const Scene& scene, std::size_t number) {
  const auto& devices = scene.explanation.ledger.devices;
  if (number > devices.size()) {
    state.message = fmt::format("{} here: 1 to 9 choose one, the first is 1", count_of(devices.size(), "GPU"));
    return;
  }
  state.gpu = state.gpu == number - 1 ? std::nullopt : std::optional(number - 1);
  state.row = 0;
}

// What somebody points at: a GPU alone, and all again; a row, and all of the chosen row.
void click(State& state, Spot spot) {
  if (spot.kind == Spot::Kind::kGpu) {
    state.gpu = state.gpu ? std::nullopt : std::optional(spot.index);
    state.row = 0;
  }
  if (spot.kind == Spot::Kind::kRow) {
    state.detail = state.row == spot.index && !state.detail;
    state.row = spot.index;
  }
}

void change_window(State& state, bool longer) {
  state.window = std::clamp(longer ? state.window * 2 : state.window / 2, kShortestWindow, kLongestWindow);
  state.message = fmt::format("window: {}", human_duration(state.window));
}

void change_speed(State& state, bool faster) {
  state.speed = std::clamp(faster ? state.speed * 2 : state.speed / 2, 1, kFastest);
  state.message = fmt::format("plays at {}x", state.speed);
}

Wish press_letter(State& state, const Scene& scene, char c) {
  const Nanos interval = std::max<Nanos>(scene.explanation.meta.interval, kMillisecond);
  switch (c) {
    case 'q':
      return {Wish::Kind::kQuit, 0, 0, ""};
    case '?':
      open_page(state, Page::kHelp);
      break;
    case 'w':
      open_page(state, Page::kWhy);
      break;
    case ' ':
      toggle_pause(state, scene);
      break;
    case 't':
      go(state, scene, now_of(state, scene) + interval);
      break;
    case 'T':
      go(state, scene, now_of(state, scene) - interval);
      break;
    case 'j':
      ask(state, Prompt::kForward);
      break;
    case 'J':
      ask(state, Prompt::kBack);
      break;
    case 'b':
      go(state, scene, std::min(state.window, span_of(scene)));
      break;
    case 'e':
      state.at.reset();
      state.plays = false;
      break;
    case '+':
    case '-':
      change_window(state, c == '+');
      break;
    case '>':
    case '<':
      change_speed(state, c == '>');
      break;
    case '/':
      ask(state, Prompt::kFilter);
      break;
    case 'o':
      ask(state, Prompt::kSort);
      break;
    case 'k':
      ask_for_signal(state, scene);
      break;
    default:
      if (c >= '1' && c <= '9') choose_gpu(state, scene, static_cast<std::size_t>(c - '0'));
      toggle_box(state, c);
      break;
  }
  return {};
}

bool is_mouse(Key key) {
  return key.kind == Kind::kClick || key.kind == Kind::kWheelUp || key.kind == Kind::kWheelDown;
}

}  // namespace

Wish press(State& state, const Scene& scene, Key key) {
  if (is_mouse(key) && state.prompt != Prompt::kNone) return {};  // it asks for a key
  state.message.clear();
  if (state.prompt == Prompt::kSignal) return answer_signal(state, key);
  if (state.prompt == Prompt::kSort) {
    answer_sort(state, key);
    return {};
  }
  if (state.prompt != Prompt::kNone) {
    type(state, scene, key);
    return {};
  }
  switch (key.kind) {
    case Kind::kLetter:
      return press_letter(state, scene, key.letter);
    case Kind::kUp:
    case Kind::kDown:
      move(state, scene, key.kind == Kind::kUp ? -1 : 1);
      break;
    case Kind::kPageUp:
    case Kind::kPageDown:
      move(state, scene, key.kind == Kind::kPageUp ? -kPageOfRows : kPageOfRows);
      break;
    case Kind::kHome:
      state.row = state.scrolled = 0;
      break;
    case Kind::kEnd:
      move(state, scene, 10'000);
      break;
    case Kind::kLeft:
    case Kind::kRight:
      step_gpu(state, scene, key.kind == Kind::kRight);
      break;
    case Kind::kTab:
      state.processes = !state.processes;
      state.row = 0;
      break;
    case Kind::kEnter:
      if (state.page == Page::kMain) state.detail = !state.detail;
      break;
    case Kind::kEscape:
      leave(state);
      break;
    case Kind::kWheelUp:
    case Kind::kWheelDown:
      move(state, scene, key.kind == Kind::kWheelUp ? -kTurnOfWheel : kTurnOfWheel);
      break;
    case Kind::kClick:
      click(state, key.spot);
      break;
    case Kind::kBackspace:
      break;
  }
  return {};
}

void pass(State& state, Nanos time, Nanos span) {
  if (!state.plays || !state.at) return;
  state.at = std::min(span, *state.at + time * state.speed);
  if (*state.at >= span) state.plays = false;
}

std::optional<std::pair<Nanos, Nanos>> window_of(const State& state, Nanos span) {
  const Nanos to = std::clamp<Nanos>(state.at.value_or(span), 0, span);
  const Nanos from = std::max<Nanos>(0, to - state.window);
  if (to > from) return std::pair(from, to);
  return span > 0 ? std::optional(std::pair<Nanos, Nanos>(0, std::min(span, kSecond))) : std::nullopt;
}

}  // namespace headroom::screen
