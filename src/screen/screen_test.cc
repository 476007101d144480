// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "analyze/testing_random.h"
#include "base/strings.h"
#include "diagnose/explain.h"
#include "report/html_style.h"
#include "screen/accounts.h"
#include "screen/canvas.h"
#include "screen/scene.h"

namespace headroom::screen {
namespace {

using headroom::testing::RecordingBuilder;
using ::testing::HasSubstr;
using ::testing::Not;

// A recording and the window of it that a state asks for.
struct Watched {
  explicit Watched(Recording r) : recording(std::move(r)) { look(); }

  void look() {
    const Nanos span = recording.meta.end - recording.meta.start;
    explanation = explain(recording, {.window = window_of(state, span)});
    view = view::view_of(recording, explanation, {.bins = 1, .series_bins = 1});
  }
  [[nodiscard]] Scene scene() const {
    Scene scene{explanation, view, recording.meta.start, recording.meta.end, "run.hrec", "", std::nullopt};
    if (view.goes_on) scene.behind = 1400 * kMillisecond;
    scene.now = now;
    scene.lacks = lacks;
    return scene;
  }
  Wish press(Key key) {
    const Wish wish = screen::press(state, scene(), key);
    look();
    return wish;
  }
  Wish type(std::string_view keys) {
    Wish last;
    for (const char c : keys) last = press(c == '\n' ? Key{Key::Kind::kEnter} : letter(c));
    return last;
  }
  [[nodiscard]] std::string text(Size size = {80, 24}, Look how = {.colour = false, .utf8 = true}) const {
    return text_of(picture(scene(), state, size, how).lines, how.colour);
  }

  Recording recording;
  State state;
  Explanation explanation;
  view::View view;
  std::vector<report::StandingFinding> now;
  std::vector<std::string> lacks;
};

// Two GPUs, of which one waits; three processes; a fourth where a test wants a stranger.
Recording job(bool ended = true, bool stranger = false) {
  RecordingBuilder recording(120);
  recording.gpu(0, [](double t) { return static_cast<int>(t) % 10 < 3 ? 1.0 : 0.0; });
  recording.gpu(1, [](double) { return 1.0; }).machine(8, 2.0);
  recording.process(100, 1, 0, 120, 0.2).process(101, 100, 1, 120, 0.95).process(200, 1, 0, 120, 0.5);
  recording.context(100, 0, 2, 120).context(200, 1, 2, 120);
  if (stranger) recording.process({300, 1, 0, 120, 3.0, false}).context(300, 0, 2, 120);
  if (!ended) recording.meta().stop_reason = "";
  Recording built = recording.build();
  if (!ended)  // of those that live nobody knows an end
    for (Source& source : built.sources)
      if (source.kind == SourceKind::kProcess) source.attrs.erase("end_ns");
  return built;
}

Watched live() { return Watched(job(false)); }

TEST(Letters, TextFromOutsideTakesTheColumnsItShows) {
  EXPECT_EQ(width_of("ab"), 2U);
  EXPECT_EQ(width_of("日本"), 4U);
  EXPECT_EQ(width_of("e\u0301"), 1U);
  EXPECT_EQ(width_of("\x1b[31m"), 8U);
  EXPECT_EQ(width_of("\u202e"), 6U);
  EXPECT_EQ(width_of("日本", false), 2U);
}

TEST(Canvas, NothingIsWrittenOutside) {
  Canvas canvas({6, 1}, {.colour = false, .utf8 = true});
  canvas.put(0, 0, "日本語テ");
  canvas.put(3, 0, "below");
  canvas.put(0, 9, "beside");
  EXPECT_EQ(text_of(std::move(canvas).take().lines, false), "日本…\n");
}

TEST(Canvas, ColoursAreGivenBack) {
  Canvas canvas({6, 1}, {.colour = true, .utf8 = true});
  canvas.put(0, 0, "red", {.ink = Colour::kRed, .ground = Colour::kGrey});
  EXPECT_EQ(text_of(std::move(canvas).take().lines, true), "\033[0;31;100mred\033[0m\n");
}

TEST(Accounts, HaveLettersOfTheirOwn) {
  std::set<char> letters;
  for (const AccountLook& look : kAccountLooks) EXPECT_TRUE(letters.insert(look.letter).second) << look.letter;
}

// xterm's palette: a cube of six levels, then greys.
std::array<int, 3> rgb_of(Colour colour) {
  const int number = static_cast<int>(colour) - kFirstOfPalette;
  if (number >= 216) return {8 + 10 * (number - 216), 8 + 10 * (number - 216), 8 + 10 * (number - 216)};
  constexpr std::array kLevels{0, 95, 135, 175, 215, 255};
  const auto level = [&](int part) { return kLevels[static_cast<std::size_t>(part % 6)]; };
  return {level(number / 36), level(number / 6), level(number)};
}

TEST(Accounts, HaveTheColoursOfTheReportsDarkPage) {
  const std::string_view style = report::html::kStyle;
  const std::string_view dark = style.substr(style.find("prefers-color-scheme:dark"));
  std::set<Colour> own;
  for (const AccountLook& look : kAccountLooks) {
    const std::string name = fmt::format("--{}:#", info(look.id).cause);
    const std::size_t at = dark.find(name);
    ASSERT_NE(at, std::string_view::npos) << name;
    double away = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const int there = std::stoi(std::string(dark.substr(at + name.size() + 2 * i, 2)), nullptr, 16);
      away += std::pow(there - rgb_of(look.own)[i], 2);
    }
    EXPECT_LT(std::sqrt(away), 75) << name;
    EXPECT_TRUE(own.insert(look.own).second) << name;
  }
}

TEST(Canvas, ColoursOfThePaletteAreWrittenByNumber) {
  Canvas canvas({6, 1}, {.colour = true, .utf8 = true, .palette = true});
  const std::array shares{view::Share{Account::kInput, kSecond}};
  put_bar(canvas, 0, 0, 2, shares);
  EXPECT_EQ(text_of(std::move(canvas).take().lines, true), "\033[0;38;5;208m██\033[0m\n");
}

TEST(Accounts, AShortPeakSurvivesInAStrip) {
  view::Strip strip;
  strip.bins = {{{Account::kUseful, 990 * kSecond}, {Account::kHung, 10 * kSecond}}};
  Canvas letters({1, 2}, {.colour = false, .utf8 = true});
  put_strip(letters, 0, 0, 2, strip);
  EXPECT_EQ(text_of(std::move(letters).take().lines, false), "H\n#\n");
  Canvas blocks({1, 2}, {.colour = true, .utf8 = true});
  put_strip(blocks, 0, 0, 2, strip);
  EXPECT_EQ(std::move(blocks).take().lines[0][0], (Cell{"▇", {.ink = Colour::kGreen, .ground = Colour::kRed}}));
}

TEST(Picture, SaysWhatTheGpusDidInTheLastMinute) {
  const Watched watched = live();
  const std::string text = watched.text();
  EXPECT_THAT(std::string(split(text, '\n').front()), HasSubstr("of 1:00"));
  EXPECT_THAT(text, HasSubstr("live: 1:00 to 2:00 of 2:00"));
  EXPECT_THAT(text, HasSubstr("last reading 1.4 s ago"));
}

TEST(Picture, PutsTheFindingFirstThatTheReportPutsFirst) {
  RecordingBuilder recording(120);
  recording.gpu(0, [](double) { return 0.5; }).gpu(1, [](double) { return 0.0; });
  recording.process(100, 1, 0, 120, 0.2).process(101, 100, 1, 120, 0.95).context(100, 0, 0, 120);
  const Watched watched(recording.build());
  const auto& findings = watched.explanation.findings;
  ASSERT_GT(findings.size(), 1U);
  ASSERT_GT(findings.back().cost(), findings.front().cost()) << "a GPU that is not needed costs most, and comes last";
  EXPECT_THAT(watched.text(), HasSubstr("! " + findings.front().title.substr(0, 20)));
}

TEST(Picture, AMomentIsNoAlarm) {
  Watched watched = live();
  ASSERT_THAT(watched.text(), HasSubstr("! "));
  watched.explanation.too_few = true;
  for (Finding& finding : watched.explanation.findings) finding.confidence = Confidence::kLow;
  EXPECT_THAT(watched.text(), Not(HasSubstr("! ")));
  EXPECT_THAT(watched.text(), HasSubstr("Too short a time to tell what costs."));
  watched.explanation.findings.back().confidence = Confidence::kHigh;  // what the driver itself said
  EXPECT_THAT(watched.text(), HasSubstr("! " + watched.explanation.findings.back().title.substr(0, 20)));
}

TEST(Picture, PutsWhatStandsNowBeforeTheFindingOfTheWindow) {
  Watched watched = live();
  ASSERT_TRUE(first_finding(watched.explanation));
  const std::string first = watched.explanation.findings[*first_finding(watched.explanation)].title;
  const auto place = [&](const std::string& words) { return watched.text({200, 40}).find("! " + words); };
  const std::string::size_type alone = place(first);
  ASSERT_NE(alone, std::string::npos);
  EXPECT_EQ(place("Now: "), std::string::npos);
  const Nanos end = watched.recording.meta.end;
  watched.now = {
      {.key = "usual", .title = "One GPU idles", .advice = "", .since = end - 20 * kSecond},
      {.key = "same", .title = first, .advice = "", .since = 0},
      {.key = "hang", .title = "Nothing moves", .advice = "look", .alarm = true, .since = end - 130 * kSecond}};
  EXPECT_EQ(place("Now: Nothing moves, for 2:10. Try: look."), alone);
  EXPECT_GT(place(first), alone);
  EXPECT_GT(place("Now: One GPU idles, for 20.0 s."), place(first));
  EXPECT_EQ(place("Now: " + first), std::string::npos) << "the window has it";
  watched.now[1].alarm = true;
  EXPECT_NE(place("Now: " + first), std::string::npos);
  EXPECT_EQ(place(first), std::string::npos) << "not twice";
  watched.type(" ");
  EXPECT_EQ(place("Now: "), std::string::npos) << "it stands still";
  EXPECT_EQ(place(first), alone);
}

TEST(Picture, SaysBelowItsStatusWhatItCannotHave) {
  Watched watched = live();
  const std::string before = watched.text();
  watched.lacks = {"no driver: headroom doctor says more"};
  const std::string after = watched.text();
  const auto lines = split(after, '\n');
  const auto said = std::find(lines.begin(), lines.end(), watched.lacks.front());
  ASSERT_NE(said, lines.end());
  EXPECT_THAT(std::string(*std::prev(said)), ::testing::StartsWith("live: "));
  EXPECT_EQ(before.find("headroom doctor"), std::string::npos);
}

TEST(Rows, WithoutGpusSayWhatTheMainThreadsSleepIn) {
  RecordingBuilder recording(60);
  recording.process(100, 1, 0, 60, 0.2);
  Recording built = recording.build();
  const auto process = static_cast<std::size_t>(built.all(SourceKind::kProcess).front());
  built.sources[process].attrs.erase("end_ns");
  Track& track = built.tracks[process];
  std::erase_if(track.columns, [](const Column& column) { return column.metric == Metric::kWaitChannel; });
  track.columns.push_back({Metric::kWaitChannel, std::vector<std::int64_t>(track.at.size()), {}});
  std::fill(track.columns.back().values.begin(), track.columns.back().values.end(),
            static_cast<std::int64_t>(WaitChannel::kDisk));
  const Watched watched(built);
  EXPECT_EQ(rows_of(watched.scene(), watched.state).at(0).doing, "waits for the disk");
}

TEST(Picture, IsOfTheSizeOfTheTerminalWhateverItIs) {
  Watched watched = live();
  for (const Page page : {Page::kMain, Page::kWhy, Page::kHelp})
    for (const std::size_t columns : {1U, 39U, 40U, 63U, 80U, 160U, 300U, 400U})
      for (const std::size_t rows : {1U, 9U, 10U, 13U, 24U, 100U, 120U}) {
        watched.state.page = page;
        watched.state.detail = rows % 2 == 0;
        const auto [lines, spots] = picture(watched.scene(), watched.state, {columns, rows}, {});
        ASSERT_EQ(lines.size(), rows);
        ASSERT_EQ(spots.size(), rows);
        for (const Line& line : lines) ASSERT_EQ(line.size(), columns);
      }
}

TEST(Picture, OfWhateverIsLegalStaysWhole) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    Watched watched(seed % 2 == 0 ? headroom::testing::random_recording(random)
                                  : headroom::testing::random_batch(random));
    for (const char* keys : {"t", "j\n", "J3s\n", "T", " ",  "+-", "/py\n", "om", "oc", "w",
                             "?", "b",   "e",     "k", "xB", "S",  "P",     "F",  "B",  "S92"}) {
      watched.type(keys);
      const Picture whole = picture(watched.scene(), watched.state, {40 + 13 * seed, 10 + seed}, {});
      ASSERT_EQ(whole.lines.size(), 10 + seed);
      watched.press({Key::Kind::kClick, 0, whole.spots[random() % whole.spots.size()]});
    }
  }
}

TEST(Picture, ItsHeadIsItsFirstRows) {
  Watched watched = live();
  for (const Size size : {Size{80, 24}, Size{40, 10}, Size{300, 100}, Size{400, 120}, Size{120, 15}, Size{120, 16}}) {
    const auto lines = picture(watched.scene(), watched.state, size, {}).lines;
    const auto first = head(watched.scene(), watched.state, size, {});
    ASSERT_GT(first.size(), 1U);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), lines.begin())) << size.columns << " x " << size.rows;
  }
  EXPECT_TRUE(head(watched.scene(), watched.state, {39, 24}, {}).empty());
  watched.type("w");
  EXPECT_TRUE(head(watched.scene(), watched.state, {80, 24}, {}).empty());
}

TEST(Picture, EveryGpuHasARowAndThoseWithoutRoomAreCounted) {
  RecordingBuilder recording(120);
  for (int i = 0; i < 16; ++i) recording.gpu(i, [](double) { return 1.0; });
  const Watched watched(recording.build());
  EXPECT_THAT(watched.text({100, 40}), HasSubstr("\n15 "));
  const std::string small = watched.text({60, 14});
  EXPECT_THAT(small, HasSubstr("more GPUs: right and left show one at a time"));
  EXPECT_THAT(watched.text({60, 14}, {.colour = false, .utf8 = false}), Not(HasSubstr("█")));
}

TEST(Keys, StepsAndJumpsMoveTheWindow) {
  Watched watched(job());
  EXPECT_EQ(watched.view.end, watched.recording.meta.end);
  watched.type("T");
  EXPECT_EQ(watched.state.at, 119 * kSecond);
  watched.type("J30s\n");
  EXPECT_EQ(watched.state.at, 89 * kSecond);
  EXPECT_EQ(watched.view.end - watched.recording.meta.start, 89 * kSecond);
  watched.type("j\n");
  EXPECT_EQ(watched.state.at, 120 * kSecond);
  watched.type("J3 apples\n");
  EXPECT_THAT(watched.state.message, HasSubstr("'3 apples' is no time"));
  watched.type("b");
  EXPECT_EQ(watched.state.at, 60 * kSecond);
  watched.type("TT-");
  EXPECT_EQ(watched.view.begin - watched.recording.meta.start, 28 * kSecond);
  watched.type("e");
  EXPECT_EQ(watched.view.end, watched.recording.meta.end);
}

TEST(Keys, AReplayPlaysAndEnds) {
  Watched watched(job());
  watched.type(" ");
  EXPECT_TRUE(watched.state.plays);
  EXPECT_EQ(watched.state.at, 60 * kSecond);
  watched.type(">");
  pass(watched.state, 10 * kSecond, 120 * kSecond);
  EXPECT_EQ(watched.state.at, 80 * kSecond);
  watched.type(" ");
  pass(watched.state, 10 * kSecond, 120 * kSecond);
  EXPECT_EQ(watched.state.at, 80 * kSecond);
  watched.type(" ");
  pass(watched.state, 100 * kSecond, 120 * kSecond);
  EXPECT_EQ(watched.state.at, 120 * kSecond);
  EXPECT_FALSE(watched.state.plays);
}

TEST(Keys, ALivePictureStandsStillAndGoesOn) {
  Watched watched = live();
  watched.type(" ");
  EXPECT_EQ(watched.state.at, 120 * kSecond);
  EXPECT_THAT(watched.text(), HasSubstr("live, paused"));
  watched.type(" ");
  EXPECT_EQ(watched.state.at, std::nullopt);
}

TEST(Keys, FilterSortAndTheChosenGpu) {
  Watched watched = live();
  EXPECT_EQ(rows_of(watched.scene(), watched.state).size(), 3U);
  watched.type("/101\n");
  ASSERT_EQ(rows_of(watched.scene(), watched.state).size(), 1U);
  EXPECT_EQ(rows_of(watched.scene(), watched.state)[0].pid, 101);
  watched.press({Key::Kind::kEscape});
  watched.type("/!101\noc");
  const auto rows = rows_of(watched.scene(), watched.state);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].pid, 200);
  watched.press({Key::Kind::kEscape});
  watched.press({Key::Kind::kRight});
  EXPECT_EQ(watched.state.gpu, 0U);
  EXPECT_EQ(rows_of(watched.scene(), watched.state).size(), 1U);
  watched.press({Key::Kind::kLeft});
  EXPECT_EQ(watched.state.gpu, std::nullopt);
  watched.press({Key::Kind::kLeft});
  EXPECT_EQ(watched.state.gpu, 1U);
}

TEST(Keys, CapitalsHideAndShowThePartsOfThePage) {
  Watched watched = live();
  const std::string whole = watched.text({80, 30});
  const std::vector<std::pair<char, std::string>> parts{
      {'B', "\nledger"}, {'S', "\ntime "}, {'P', "\n     PID NAME"}, {'F', "\n! "}};
  for (const auto& [key, words] : parts) {
    ASSERT_THAT(whole, HasSubstr(words)) << key;
    watched.press(letter(key));
    EXPECT_THAT(watched.text({80, 30}), Not(HasSubstr(words))) << key;
    for (const auto& [other, others] : parts)
      if (other != key) {
        EXPECT_THAT(watched.text({80, 30}), HasSubstr(others)) << key << " beside " << other;
      }
    EXPECT_THAT(watched.state.message, HasSubstr(std::string(1, key) + " shows it again"));
    watched.press(letter(key));
    EXPECT_EQ(watched.text({80, 30}), whole);
  }
  watched.type("Pk");
  EXPECT_EQ(watched.state.prompt, Prompt::kNone) << "no signal to a process that is not shown";
}

TEST(Keys, DigitsChooseAGpu) {
  Watched watched = live();
  watched.type("2");
  EXPECT_EQ(watched.state.gpu, 1U);
  EXPECT_THAT(watched.text(), Not(HasSubstr("GPU 0  ")));
  watched.type("1");
  EXPECT_EQ(watched.state.gpu, 0U);
  watched.type("1");
  EXPECT_EQ(watched.state.gpu, std::nullopt);
  watched.type("3");
  EXPECT_EQ(watched.state.gpu, std::nullopt);
  EXPECT_THAT(watched.state.message, HasSubstr("2 GPUs here"));
}

TEST(Picture, AStripOfOneAccountIsOneRow) {
  RecordingBuilder recording(120);
  recording.gpu(0, [](double t) { return static_cast<int>(t) % 10 < 3 ? 1.0 : 0.0; }).gpu(1, [](double) {
    return 0.0;
  });
  recording.process(100, 1, 0, 120, 0.2).context(100, 0, 0, 120);
  const std::string text = Watched(recording.build()).text({80, 40});
  const auto lines = split(text, '\n');
  const auto at = std::find_if(lines.begin(), lines.end(), [](auto line) { return line.starts_with("GPU 1"); });
  ASSERT_LT(at + 3, lines.end());
  EXPECT_TRUE((at + 2)->starts_with("time"));
  EXPECT_TRUE((at + 3)->starts_with("       1:00")) << "the axis: " << *(at + 3);
}

TEST(Picture, OfWhatGoesOnTheStripsMoveOnAsTheyAre) {
  const auto strip = [](int seconds) {
    RecordingBuilder recording(seconds);
    recording.gpu(0, [](double t) { return static_cast<int>(t) % 7 < 3 ? 1.0 : 0.0; });
    recording.process(100, 1, 0, seconds, 0.2).context(100, 0, 0, seconds);
    recording.meta().stop_reason = "";
    const std::string text = Watched(recording.build()).text({67, 24}, {.colour = false, .utf8 = false});
    for (const auto line : split(text, '\n'))
      if (line.starts_with("time   ")) return std::string(line.substr(7));
    return std::string();
  };
  const std::string before = strip(100), after = strip(101);  // 60 bins of a second
  ASSERT_EQ(before.size(), 60U);
  EXPECT_EQ(after.substr(0, 58), before.substr(1, 58));
  const std::string young = strip(30);
  EXPECT_EQ(young.find_first_not_of(' '), 30U) << young;
}

TEST(Picture, StripsShrinkBeforeProcessesAreLeftOut) {
  RecordingBuilder recording(120);
  recording.gpu(0, [](double t) { return static_cast<int>(t) % 10 < 3 ? 1.0 : 0.0; }).machine(8, 2.0);
  for (int pid = 100; pid < 107; ++pid) recording.process(pid, 1, 0, 120, 0.2);
  recording.context(100, 0, 0, 120);
  const std::string text = Watched(recording.build()).text({80, 24});
  for (int pid = 100; pid < 107; ++pid) EXPECT_THAT(text, HasSubstr(std::to_string(pid)));
}

// The first row of the picture that shows this.
Spot spot_of(const Watched& watched, std::string_view words) {
  const Picture whole = picture(watched.scene(), watched.state, {80, 30}, {.colour = false, .utf8 = true});
  const std::string text = text_of(whole.lines, false);
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].find(words) != std::string_view::npos) return whole.spots[i];
  ADD_FAILURE() << "nothing shows " << words;
  return {};
}

TEST(Mouse, AClickIsAboutWhatIsThere) {
  Watched watched = live();
  EXPECT_EQ(spot_of(watched, "of 1:00"), Spot{});
  EXPECT_EQ(spot_of(watched, "GPU 1  "), (Spot{Spot::Kind::kGpu, 1}));
  watched.press({Key::Kind::kClick, 0, spot_of(watched, "GPU 1  ")});
  EXPECT_EQ(watched.state.gpu, 1U);
  watched.press({Key::Kind::kClick, 0, spot_of(watched, "ledger")});
  EXPECT_EQ(watched.state.gpu, std::nullopt);
  const Spot row = spot_of(watched, " 101 ");
  ASSERT_EQ(row.kind, Spot::Kind::kRow);
  EXPECT_EQ(rows_of(watched.scene(), watched.state)[row.index].pid, 101);
  watched.press({Key::Kind::kClick, 0, row});
  EXPECT_EQ(watched.state.row, row.index);
  EXPECT_FALSE(watched.state.detail);
  watched.press({Key::Kind::kClick, 0, row});
  EXPECT_TRUE(watched.state.detail);
  watched.press({Key::Kind::kClick, 0, row});
  EXPECT_FALSE(watched.state.detail);
}

TEST(Mouse, TheWheelScrollsAndAQuestionWaitsForItsKey) {
  Watched watched = live();
  watched.press({Key::Kind::kWheelDown});
  EXPECT_EQ(watched.state.row, 2U) << "the last of three rows";
  watched.press({Key::Kind::kWheelUp});
  EXPECT_EQ(watched.state.row, 0U);
  watched.type("w");
  watched.press({Key::Kind::kWheelDown});
  EXPECT_EQ(watched.state.scrolled, 3U);
  watched.type("wk");
  ASSERT_EQ(watched.state.prompt, Prompt::kSignal);
  watched.press({Key::Kind::kClick, 0, {Spot::Kind::kRow, 1}});
  EXPECT_EQ(watched.state.prompt, Prompt::kSignal);
}

TEST(Keys, ASignalIsAskedForAndGoesToTheProcessThatWasNamed) {
  Watched watched = live();
  const Row first = rows_of(watched.scene(), watched.state)[0];
  EXPECT_EQ(watched.type("k").kind, Wish::Kind::kNone);
  EXPECT_THAT(watched.text(), HasSubstr("signal to " + std::to_string(first.pid)));
  watched.state.sort = Sort::kPid;  // rows change places meanwhile
  watched.state.row = 2;
  const Wish wish = watched.type("t");
  EXPECT_EQ(wish.kind, Wish::Kind::kSignal);
  EXPECT_EQ(wish.pid, first.pid);
  EXPECT_EQ(wish.process_start, first.begin);
  EXPECT_EQ(wish.signal, "TERM");
  EXPECT_EQ(watched.type("kx").kind, Wish::Kind::kNone);
  EXPECT_EQ(watched.state.message, "no signal was sent");
}

TEST(Keys, NoSignalsReadOnlyInThePastOrToForeignProcesses) {
  Watched watched = live();
  watched.state.readonly = true;
  EXPECT_EQ(watched.type("kt").kind, Wish::Kind::kNone);
  watched.state.readonly = false;
  EXPECT_EQ(watched.type("Tkt").kind, Wish::Kind::kNone);
  Watched ended(job());
  EXPECT_EQ(ended.type("kt").kind, Wish::Kind::kNone);
  Watched foreign(job(false, true));
  foreign.type("/300\n");
  ASSERT_EQ(rows_of(foreign.scene(), foreign.state).size(), 1U);
  EXPECT_EQ(foreign.type("kt").kind, Wish::Kind::kNone);
}

TEST(Rows, PowerIsOnlySaidWhereNothingElseIsOnTheGpu) {
  Watched watched = live();
  for (const Row& row : rows_of(watched.scene(), watched.state)) EXPECT_EQ(row.watts, std::nullopt);
}

TEST(Rows, OfABatchAreItsTasks) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.9; });
  recording.task({"first", 100, {0}, 1, 80, 0}).task({"second", 101, {0}, 41, 100, 0, ""});
  recording.meta().stop_reason = "";
  Watched watched(recording.build());
  const auto rows = rows_of(watched.scene(), watched.state);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "second");
  EXPECT_TRUE(rows[0].lives);
  EXPECT_EQ(rows[1].name, "first");
  EXPECT_EQ(rows[1].doing, "succeeded");
  watched.press({Key::Kind::kTab});
  EXPECT_EQ(rows_of(watched.scene(), watched.state)[0].name, "python3");
}

}  // namespace
}  // namespace headroom::screen
