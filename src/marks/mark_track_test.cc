// SPDX-License-Identifier: Apache-2.0
#include "marks/mark_track.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "model/events.h"

namespace headroom::marks {
namespace {

using Rows = std::vector<std::string>;

class Marks : public ::testing::Test {
 protected:
  void mark(Mark::Kind kind, Nanos ms, std::string_view name = "", double value = 0, std::string_view text = "") {
    track_.take({.kind = kind, .at = ms * kMillisecond, .name = name, .text = text, .value = value});
  }
  void begin(Nanos ms, std::string_view name) { mark(Mark::Kind::kBegin, ms, name); }
  void end(Nanos ms, std::string_view name = "") { mark(Mark::Kind::kEnd, ms, name); }
  void finish(Nanos ms) { track_.finish(ms * kMillisecond, sink_); }

  // "100 epoch/train" of each row.
  std::vector<std::string> rows() {
    std::vector<std::string> rows;
    const Recording& recording = sink_.recording();
    for (const Track& track : recording.tracks)
      for (const ListRow& row : track.lists) {
        std::vector<std::string> names;
        for (const TextId id : recording.lists[row.list]) names.push_back(recording.texts[id]);
        rows.push_back(std::to_string(row.at / kMillisecond) + " " + join(names, "/"));
      }
    return rows;
  }

  std::vector<std::int64_t> nths() {
    std::vector<std::int64_t> nths;
    for (const ListRow& row : sink_.recording().tracks.at(0).lists) nths.push_back(row.value);
    return nths;
  }

  std::int64_t too_short() {
    std::int64_t count = 0;
    for (const Loss& loss : sink_.recording().losses)
      if (loss.what == "mark_short") count += loss.count;
    return count;
  }

  MarkTrack track_{Source{SourceKind::kMarks, "7/1/7/marks", kNoSource, {{"via", "marks"}}}};
  MemorySink sink_;
};

TEST_F(Marks, OfProgressTheChangesAreKeptAndTheRestIsCounted) {
  const auto at = [&](Nanos ms, std::string_view unit, std::int64_t number, std::int64_t of) {
    track_.take({.kind = Mark::Kind::kProgress, .at = ms * kMillisecond, .name = unit, .count = number, .of = of});
  };
  at(100, "epoch", 1, 5);
  for (int step = 0; step < 60; ++step) {  // six seconds
    track_.take({.kind = Mark::Kind::kStep, .at = (200 + step * 100) * kMillisecond});
    at(200 + step * 100, "step", step + 1, 60);
    track_.write((200 + step * 100) * kMillisecond, sink_);
  }
  at(6300, "epoch", 2, 5);
  at(6300, "epoch", 2, 5);
  at(6400, "step", 0, 60);
  track_.write(6500 * kMillisecond, sink_);
  std::vector<std::string> told;
  for (const Event& event : sink_.recording().events)
    if (const auto progress = of_event<events::Progress>(event))
      told.push_back(std::to_string(event.at / kMillisecond) + " " + progress->unit + " " +
                     std::to_string(progress->number) + " " + std::to_string(progress->steps.value_or(-1)));
  EXPECT_EQ(told, (Rows{"100 epoch 1 -1", "200 step 1 1", "6300 epoch 2 -1", "6400 step 0 60"}));
}

TEST_F(Marks, PhasesNestAndEveryOpenOneIsInItsRow) {
  begin(100, "epoch");
  begin(200, "train");
  end(500, "train");
  end(600, "epoch");
  finish(1000);
  EXPECT_EQ(rows(), (Rows{"100 epoch", "200 epoch/train", "500 epoch", "600 "}));
}

TEST_F(Marks, AnEndEndsWhatWasOpenedWithinAndNothingElse) {
  end(50, "never begun");
  begin(100, "a");
  begin(200, "b");
  end(300, "c");
  end(400, "a");
  finish(500);
  EXPECT_EQ(rows(), (Rows{"100 a", "200 a/b", "400 "}));
}

TEST_F(Marks, APhaseThatBeginsAnewHasARowOfItsOwn) {
  const auto epoch = [&](Nanos ms, std::int32_t nth) {
    track_.take({.kind = Mark::Kind::kPhase, .at = ms * kMillisecond, .name = "epoch", .nth = nth});
  };
  epoch(0, 1);
  epoch(50, 1);
  epoch(100, 2);
  epoch(110, 3);  // the second one was too short for a row
  finish(1000);
  EXPECT_EQ(rows(), (Rows{"0 epoch", "100 ", "110 epoch"}));
  const std::vector<ListRow>& lists = sink_.recording().tracks.at(0).lists;
  EXPECT_EQ(lists.at(0).value, 1);
  EXPECT_EQ(lists.at(2).value, 3);
}

TEST_F(Marks, APhaseReplacesAllOthers) {
  mark(Mark::Kind::kPhase, 100, "train");
  mark(Mark::Kind::kPhase, 300, "validate");
  mark(Mark::Kind::kPhase, 400, "validate");
  mark(Mark::Kind::kPhase, 500, "");
  finish(600);
  EXPECT_EQ(rows(), (Rows{"100 train", "300 validate", "500 "}));
}

TEST_F(Marks, ShortOnesBelongToWhatIsAroundThem) {
  begin(0, "epoch");
  for (int step = 0; step < 100; ++step) {
    begin(100 + step * 10, "forward");
    end(104 + step * 10, "forward");
  }
  end(1500, "epoch");
  finish(2000);
  EXPECT_EQ(rows(), (Rows{"0 epoch", "1500 "}));
  EXPECT_EQ(too_short(), 100);
}

TEST_F(Marks, AMomentBetweenTwoPhasesIsNone) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    begin(epoch * 1000, "epoch");
    begin(epoch * 1000, "train");
    end(epoch * 1000 + 500, "train");
    begin(epoch * 1000 + 501, "validate");
    end(epoch * 1000 + 999, "validate");
    end(epoch * 1000 + 999, "epoch");
    track_.write((epoch * 1000 + 999) * kMillisecond, sink_);
  }
  finish(4000);
  EXPECT_EQ(rows().size(), 7U);
  EXPECT_EQ(too_short(), 0);
}

// The rest of each step is no part of the phase in it, however short.
TEST_F(Marks, WhatLiesBetweenTwoPhasesIsOfNeither) {
  begin(0, "train");
  for (int step = 0; step < 3; ++step) {
    begin(step * 40 + 15, "augment");
    end(step * 40 + 40, "augment");
  }
  finish(125);
  EXPECT_EQ(rows(), (Rows{"0 train", "15 train/augment", "40 train", "55 train/augment", "80 train", "95 train/augment",
                          "120 train"}));
  EXPECT_EQ(too_short(), 0);
}

TEST_F(Marks, OneThatBeginsOnceMoreAtOnceHasARowOfItsOwn) {
  begin(0, "train");
  track_.write(400 * kMillisecond, sink_);
  end(500, "train");
  begin(500, "train");
  end(800, "train");
  begin(801, "train");
  finish(1000);
  EXPECT_EQ(rows(), (Rows{"0 train", "500 train", "801 train"}));
  EXPECT_EQ(nths(), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(too_short(), 0);
}

TEST_F(Marks, OneThatGoesOnAfterAnotherWithinIsTheSame) {
  for (int epoch = 0; epoch < 2; ++epoch) {
    begin(epoch * 1000, "epoch");
    begin(epoch * 1000 + 100, "train");
    end(epoch * 1000 + 500, "train");
    begin(epoch * 1000 + 600, "load");
    end(epoch * 1000 + 605, "load");
    end(epoch * 1000 + 999, "epoch");
  }
  finish(1999);
  EXPECT_EQ(rows(),
            (Rows{"0 epoch", "100 epoch/train", "500 epoch", "1000 epoch", "1100 epoch/train", "1500 epoch", "1999 "}));
  EXPECT_EQ(nths(), (std::vector<std::int64_t>{1, 1, 1, 2, 2, 2, 0}));
  EXPECT_EQ(too_short(), 2);
}

TEST_F(Marks, ARangeThatBeginsOnceMoreAtOnceIsCountedAsOneTooFew) {
  MarkTrack ranges(Source{SourceKind::kMarks, "7/1/7/nvtx", kNoSource, {{"via", "nvtx"}}}, Within::kGoesOn);
  for (const Nanos ms : {0, 500, 1001}) {
    ranges.take({.kind = Mark::Kind::kBegin, .at = ms * kMillisecond, .name = "train"});
    ranges.take({.kind = Mark::Kind::kEnd, .at = (ms + 500) * kMillisecond, .name = "train"});
  }
  ranges.finish(2 * kSecond, sink_);
  EXPECT_EQ(rows(), (Rows{"0 train", "1501 "}));
  EXPECT_EQ(too_short(), 2);
}

TEST_F(Marks, AShortOneIsCountedOnceWhateverLiesWithin) {
  begin(0, "train");
  begin(500, "load");
  begin(501, "read");
  end(502, "read");
  end(503, "load");
  finish(1000);
  EXPECT_EQ(rows(), (Rows{"0 train"}));
  EXPECT_EQ(too_short(), 2) << "load and read";
}

TEST_F(Marks, ShortOnesAtTheBeginAndTheEndOfAPhaseAreOfItToo) {
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Nanos at = epoch * 1000;
    begin(at, "epoch");
    begin(at + 1, "train");
    for (int step = 0; step < 40; ++step) {
      begin(at + 1 + step * 15, "forward");
      end(at + 15 + step * 15, "forward");
      track_.write((at + 15 + step * 15) * kMillisecond, sink_);
    }
    end(at + 603, "train");
    begin(at + 604, "save");
    end(at + 998, "save");
    end(at + 999, "epoch");
  }
  finish(2500);
  EXPECT_EQ(rows(), (Rows{"1 epoch/train", "604 epoch/save", "998 ", "1001 epoch/train", "1604 epoch/save", "1999 "}));
  EXPECT_EQ(too_short(), 80);
}

TEST_F(Marks, OfAnyNumberOfShortOnesBetweenTwoWritesNothingIsLost) {
  begin(0, "train");
  for (Nanos i = 0; i < 10'000; ++i) {
    const Nanos at = kSecond + i * 100'000;
    track_.take({.kind = Mark::Kind::kBegin, .at = at, .name = "forward"});
    track_.take({.kind = Mark::Kind::kEnd, .at = at + 50'000, .name = "forward"});
  }
  end(3000, "train");
  finish(4000);
  EXPECT_EQ(rows(), (Rows{"0 train", "3000 "}));
  EXPECT_EQ(too_short(), 10'000);
}

TEST_F(Marks, AShortOneAroundAnotherIsOfWhatIsAroundBoth) {
  begin(0, "train");
  begin(100, "step");
  begin(101, "forward");
  end(114, "forward");
  end(115, "step");
  begin(116, "step");
  begin(117, "forward");
  end(145, "forward");
  end(146, "step");
  finish(1000);
  EXPECT_EQ(rows(), (Rows{"0 train", "117 train/step/forward", "146 train"}));
  EXPECT_EQ(too_short(), 2) << "the first two";
}

TEST_F(Marks, OneThatIsStillOpenAtTheEndIsShown) {
  begin(0, "train");
  begin(995, "save");
  finish(1000);
  EXPECT_EQ(rows(), (Rows{"0 train", "995 train/save"}));
  EXPECT_EQ(too_short(), 0);
}

TEST_F(Marks, ShortOnesDoNotProlongWhatHasEnded) {
  begin(0, "validate");
  end(100, "validate");
  for (int step = 0; step < 100; ++step) {
    begin(101 + step * 10, "forward");
    end(108 + step * 10, "forward");
  }
  finish(1500);
  EXPECT_EQ(rows(), (Rows{"0 validate", "100 "}));
}

TEST_F(Marks, WhenTheyAreWrittenChangesNothing) {
  std::vector<Rows> all;
  for (const Nanos every : {1, 7, 30, 1000}) {
    MarkTrack track{Source{SourceKind::kMarks, "k", kNoSource, {}}};
    MemorySink sink;
    Nanos next = every;
    const auto take = [&](Mark::Kind kind, Nanos ms, std::string_view name) {
      for (; next <= ms; next += every) track.write(next * kMillisecond, sink);
      track.take({.kind = kind, .at = ms * kMillisecond, .name = name});
    };
    for (int i = 0; i < 40; ++i) {
      take(Mark::Kind::kBegin, i * 100, "step");
      take(Mark::Kind::kBegin, i * 100 + 1, "load");
      take(Mark::Kind::kEnd, i * 100 + i, "load");
      take(Mark::Kind::kEnd, i * 100 + 60, "step");
    }
    track.finish(5 * kSecond, sink);
    Rows rows;
    for (const ListRow& row : sink.recording().tracks[0].lists)
      rows.push_back(std::to_string(row.at) + ":" + std::to_string(sink.recording().lists[row.list].size()));
    all.push_back(rows);
  }
  EXPECT_GT(all[0].size(), 50U);
  for (const Rows& rows : all) EXPECT_EQ(rows, all[0]);
}

TEST_F(Marks, StepsAreCountedAtTheInstantOfTheLast) {
  mark(Mark::Kind::kStep, 100, "", 32);
  mark(Mark::Kind::kStep, 200, "", 32);
  track_.write(kSecond, sink_);
  mark(Mark::Kind::kStep, 1500, "", 16);
  finish(2000);
  const Track& track = sink_.recording().tracks.at(0);
  EXPECT_EQ(track.at, (std::vector<Nanos>{200 * kMillisecond, 1500 * kMillisecond}));
  EXPECT_EQ(track.find(Metric::kSteps)->values, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(track.find(Metric::kSamples)->values, (std::vector<std::int64_t>{64, 80}));
}

TEST_F(Marks, StepsBelongToThePhaseInWhichTheyWereCounted) {
  begin(0, "train");
  for (int i = 1; i <= 3; ++i) mark(Mark::Kind::kStep, i * 100);
  end(400, "train");
  begin(400, "validate");
  track_.write(600 * kMillisecond, sink_);
  end(1000, "validate");
  begin(1000, "train");
  mark(Mark::Kind::kStep, 1100);
  finish(2000);
  const Track& track = sink_.recording().tracks.at(0);
  EXPECT_EQ(track.at, (std::vector<Nanos>{0, 300 * kMillisecond, 1000 * kMillisecond, 1100 * kMillisecond}));
  EXPECT_EQ(track.find(Metric::kSteps)->values, (std::vector<std::int64_t>{0, 3, 3, 4}));
}

TEST_F(Marks, PhasesWithinEveryStepLeaveTheCountsOfThePhasesAroundThem) {
  const auto train = [&](Nanos at, int steps) {
    begin(at, "train");
    for (int i = 0; i < steps; ++i) {
      begin(at + i * 10, "forward");
      end(at + 9 + i * 10, "forward");
      mark(Mark::Kind::kStep, at + 10 + i * 10);
    }
    end(at + steps * 10, "train");
  };
  train(0, 20);
  begin(200, "validate");
  end(500, "validate");
  train(500, 20);
  finish(kSecond / kMillisecond);
  const Track& track = sink_.recording().tracks.at(0);
  const std::vector<std::int64_t>& steps = track.find(Metric::kSteps)->values;
  const auto at = [&](Nanos ms) {  // the last count by then
    const auto row = std::upper_bound(track.at.begin(), track.at.end(), ms * kMillisecond) - track.at.begin();
    return row == 0 ? 0 : steps.at(static_cast<std::size_t>(row - 1));
  };
  EXPECT_EQ(steps.front(), 0) << "else the first step has no time";
  EXPECT_EQ(at(200), 20);
  EXPECT_EQ(at(509), 20);
  EXPECT_EQ(at(1000), 40);
  EXPECT_TRUE(std::find(track.at.begin(), track.at.end(), 200 * kMillisecond) != track.at.end());
  EXPECT_LE(track.at.size(), 2 * kMostHeld + 1);
}

TEST_F(Marks, StepsToldInTheInstantOfAChangeAreNotLost) {
  mark(Mark::Kind::kPhase, 100, "train");
  mark(Mark::Kind::kStep, 100);
  mark(Mark::Kind::kStep, 300);
  track_.write(400 * kMillisecond, sink_);
  mark(Mark::Kind::kPhase, 500, "validate");
  mark(Mark::Kind::kStep, 500);
  finish(2000);
  const Track& track = sink_.recording().tracks.at(0);
  EXPECT_EQ(track.at, (std::vector<Nanos>{100 * kMillisecond, 300 * kMillisecond, 500 * kMillisecond}));
  EXPECT_EQ(track.find(Metric::kSteps)->values, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(Marks, AStepInTheInstantOfARowHasARowOfItsOwn) {
  mark(Mark::Kind::kStep, 300);
  track_.write(300 * kMillisecond, sink_);
  mark(Mark::Kind::kStep, 300);
  finish(2000);
  EXPECT_EQ(sink_.recording().tracks.at(0).find(Metric::kSteps)->values, (std::vector<std::int64_t>{1, 2}));
}

TEST_F(Marks, OfAMetricMoreAreKeptAtItsBeginningThanLater) {
  for (int i = 0; i <= 600; ++i) {
    mark(Mark::Kind::kMetric, i * 1000, "loss", i % 2);  // the best and the worst are among the first two
    track_.write(i * kSecond, sink_);
  }
  finish(600'500);
  std::vector<std::int64_t> at;
  for (const Event& event : sink_.recording().events) at.push_back(event.at / kSecond);
  ASSERT_GT(at.size(), 60U);
  EXPECT_LT(at.size(), 120U);
  EXPECT_TRUE(std::equal(
      at.begin(), at.begin() + 20,
      std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}.begin()));
  EXPECT_EQ(at[at.size() - 2] - at[at.size() - 3], 10);
  EXPECT_EQ(at.back(), 600);
}

TEST_F(Marks, ManyMetricsAreKeptMoreRarelyEach) {
  for (int i = 0; i < 8; ++i)
    for (int metric = 0; metric < 40; ++metric) {
      mark(Mark::Kind::kMetric, i * 1000, "metric" + std::to_string(metric), 0);
      track_.write(i * kSecond, sink_);
    }
  EXPECT_EQ(sink_.recording().events.size(), 3U * 40) << "one in 2.5 s";
}

TEST_F(Marks, AnEpochAsAPhaseSaysWhereTheJobIs) {
  const auto told = [&] {
    Rows places;
    for (const Event& event : sink_.recording().events)
      if (const auto progress = of_event<events::Progress>(event))
        places.push_back(progress->unit + " " + std::to_string(progress->number) + "/" + std::to_string(progress->of));
    return places;
  };
  const auto phase = [&](Nanos ms, std::string_view name) {
    begin(ms, name);
    begin(ms + 100, "train");
    end(ms + 900, "train");
    end(ms + 1000);
    track_.write((ms + 1000) * kMillisecond, sink_);
  };
  phase(0, "epoch");
  phase(2000, "epoch");
  EXPECT_EQ(told(), (Rows{"epoch 1/0", "epoch 2/0"}));
  phase(6000, "epoch 4/9");
  phase(8000, "fold_2/3");
  EXPECT_EQ(told(), (Rows{"epoch 1/0", "epoch 2/0", "epoch 4/9", "fold 2/3"}));
}

TEST_F(Marks, TheBestOfAMetricIsKeptThoughItsCurveIsThinned) {
  for (const auto& [at, value] : {std::pair(0, 0.50), {40, 0.44}, {80, 0.30}, {120, 0.41}, {160, 0.52}, {200, 0.60}}) {
    mark(Mark::Kind::kMetric, at, "val_loss", value);
    track_.write(at * kMillisecond, sink_);
  }
  finish(250);
  std::vector<double> values;
  for (const Event& event : sink_.recording().events) values.push_back(of_event<events::MetricValue>(event)->value);
  EXPECT_EQ(values, (std::vector<double>{0.50, 0.30, 0.60}));
}

TEST_F(Marks, ValuesOfOneInstantStayInTheirOrder) {
  for (const double value : {0.6, 0.9, 0.5, 0.2}) mark(Mark::Kind::kMetric, 100, "loss", value);
  finish(9000);
  std::vector<double> values;
  for (const Event& event : sink_.recording().events) values.push_back(of_event<events::MetricValue>(event)->value);
  EXPECT_EQ(values, (std::vector<double>{0.6, 0.9, 0.2})) << "what a pipe held until the job ended";
}

TEST_F(Marks, AMetricAndAParameterAreOfWhenTheyWereSaid) {
  mark(Mark::Kind::kMetric, 100, "loss", 0.5);
  mark(Mark::Kind::kParameter, 200, "lr", 0, "0.1");
  finish(9000);
  ASSERT_EQ(sink_.recording().events.size(), 2U);
  EXPECT_EQ(sink_.recording().events[0].at, 100 * kMillisecond);
  EXPECT_EQ(sink_.recording().events[1].at, 200 * kMillisecond);
}

TEST_F(Marks, AParameterIsKeptWhenItChanges) {
  for (const char* value : {"0.1", "0.1", "0.2"}) {
    mark(Mark::Kind::kParameter, 10, "lr", 0, value);
    track_.write(kSecond, sink_);
  }
  finish(2000);
  ASSERT_EQ(sink_.recording().events.size(), 2U);
  EXPECT_EQ(of_event<events::Parameter>(sink_.recording().events[1])->value, "0.2");
}

TEST_F(Marks, AParameterThatChangesAllTheTimeIsKeptNowAndThen) {
  for (int i = 0; i < 25; ++i) {
    mark(Mark::Kind::kParameter, i * 1000, "lr", 0, std::to_string(i));
    track_.write(i * kSecond, sink_);
  }
  finish(25'000);
  std::vector<std::string> values;
  for (const Event& event : sink_.recording().events) values.push_back(of_event<events::Parameter>(event)->value);
  EXPECT_EQ(values, (std::vector<std::string>{"0", "10", "20", "24"}));
}

TEST_F(Marks, WhatLastsNoTimeIsNoPhase) {
  begin(100, "a");
  end(200, "a");
  begin(200, "b");
  end(300, "b");
  begin(300, "b");
  finish(1000);
  EXPECT_EQ(rows(), (Rows{"100 a", "200 b", "300 b"}));
  EXPECT_TRUE(sink_.recording().losses.empty());
}

TEST_F(Marks, RangesThatNeedNotNestEndAlone) {
  MarkTrack ranges(Source{SourceKind::kMarks, "7/1/7/nvtx", kNoSource, {{"via", "nvtx"}}}, Within::kGoesOn);
  const auto take = [&](Mark::Kind kind, Nanos ms, std::string_view name) {
    ranges.take({.kind = kind, .at = ms * kMillisecond, .name = name});
  };
  take(Mark::Kind::kBegin, 100, "a");
  take(Mark::Kind::kBegin, 200, "b");
  take(Mark::Kind::kEnd, 300, "a");
  take(Mark::Kind::kEnd, 400, "b");
  ranges.finish(kSecond, sink_);
  EXPECT_EQ(rows(), (Rows{"100 a", "200 a/b", "300 b", "400 "}));
}

TEST_F(Marks, NamesWithoutEndAreCutAndCounted) {
  for (int i = 0; i < 5000; ++i) mark(Mark::Kind::kPhase, i * 100, "epoch " + std::to_string(i));
  finish(600'000);
  EXPECT_EQ(sink_.recording().texts.size(), kMostNames);
  ASSERT_EQ(sink_.recording().losses.size(), 1U);
  EXPECT_EQ(sink_.recording().losses[0].what, "mark_cut");
  EXPECT_EQ(sink_.recording().losses[0].count, static_cast<std::int64_t>(5000 - kMostNames));
}

TEST_F(Marks, WhatIsTooDeepBelongsToWhatIsAbove) {
  for (int i = 0; i < 40; ++i) begin(i * 100, "p" + std::to_string(i));
  for (int i = 39; i >= 0; --i) end(4000 + (40 - i) * 100, "p" + std::to_string(i));
  finish(9000);
  EXPECT_EQ(rows().back(), "8000 ");
}

}  // namespace
}  // namespace headroom::marks
