// SPDX-License-Identifier: Apache-2.0
#include "exposition/counted.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "analyze/testing_random.h"
#include "base/strings.h"
#include "diagnose/explain.h"
#include "exposition/families.h"
#include "exposition/formats.h"
#include "import/jsonl_value.h"

namespace headroom::exposition {
namespace {

using headroom::testing::RecordingBuilder;

// What a recording has after the time `until`, while it goes on: its sources, rows and events so far.
Recording grown_to(const Recording& whole, Nanos until) {
  MemorySink sink;
  std::vector<SourceId> ids(whole.sources.size(), kNoSource);
  for (std::size_t i = 0; i < whole.sources.size(); ++i) {
    Source source = whole.sources[i];
    const Track& track = whole.tracks[i];
    const bool begun =
        (!track.at.empty() && track.at.front() <= until) || (!track.lists.empty() && track.lists.front().at <= until);
    if (source.kind == SourceKind::kProcess) {
      const Process process = process_of(source);
      if (process.start > until) continue;
      if (process.end && *process.end > until) source.attrs.erase("end_ns");
    } else if (!begun && source.kind != SourceKind::kGpu) {
      continue;
    }
    if (source.parent != kNoSource) source.parent = ids[static_cast<std::size_t>(source.parent)];
    ids[i] = sink.add_source(source);
  }
  for (std::size_t i = 0; i < whole.sources.size(); ++i) {
    const Track& track = whole.tracks[i];
    for (std::size_t row = 0; row < track.at.size() && track.at[row] <= until && ids[i] != kNoSource; ++row) {
      std::vector<Cell> cells;
      for (const Column& column : track.columns) {
        Cell cell{.metric = column.metric, .value = column.values[row]};
        if (!column.has(row)) cell.absent = static_cast<Absent>(column.absent[row]);
        cells.push_back(cell);
      }
      sink.add_row(ids[i], track.at[row], cells);
    }
    for (const ListRow& row : track.lists) {
      if (row.at > until || ids[i] == kNoSource) break;
      std::vector<TextId> texts;
      for (const TextId text : whole.lists[row.list]) texts.push_back(sink.intern(whole.texts[text]));
      sink.add_list_row(ids[i], {row.at, sink.intern_list(texts), row.value});
    }
  }
  for (const Event& event : whole.events)
    if (event.at <= until) sink.add_event(event);
  RecordingMeta meta = whole.meta;
  meta.end = std::min(meta.end, until);
  if (until < whole.meta.end) meta.stop_reason.clear();
  if (until < whole.meta.end) meta.exit_code.reset();
  sink.set_meta(meta);
  return sink.take();
}

// Every counter of the text by name and labels, in nanoseconds where it counts seconds.
std::map<std::string, std::int64_t> counters_in(const std::string& text) {
  std::map<std::string, std::int64_t> counters;
  bool counts = false;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("# TYPE ")) counts = line.ends_with(" counter");
    if (line.empty() || line.starts_with("#") || !counts) continue;
    const auto space = line.rfind(' ');
    counters[std::string(line.substr(0, space))] = parse_decimal(line.substr(space + 1), 9).value();
  }
  return counters;
}

Nanos sum_of(const CountedGpu& gpu) { return std::accumulate(gpu.accounts.begin(), gpu.accounts.end(), Nanos{0}); }

TEST(CountOn, NoCounterFallsWhileARecordingGrowsAndAllSumToWhatIsCounted) {
  std::mt19937 random(27'4);
  for (int i = 0; i < 60; ++i) {
    const Recording whole = headroom::testing::random_recording_or_batch(random);
    const Nanos settles = static_cast<Nanos>(random() % 6) * kSecond;
    const Nanos step = kSecond + static_cast<Nanos>(random() % 4) * kSecond;
    Counted counted;
    std::map<std::string, std::int64_t> before;
    Nanos until = whole.meta.start;
    do {
      until = std::min(until + step, whole.meta.end);
      const Recording now = grown_to(whole, until);
      const Explanation explanation = explain(now);
      const Nanos span = explanation.ledger.span();
      count_on(counted, explanation, until == whole.meta.end ? span : std::max<Nanos>(0, span - settles));
      const auto counters = counters_in(to_prometheus(families_of(snapshot_of(now, explanation, counted))));
      for (const auto& [name, value] : before) {
        ASSERT_TRUE(counters.contains(name)) << name << " of recording " << i;
        ASSERT_GE(counters.at(name), value) << name << " of recording " << i << " after " << seconds(counted.until);
      }
      before = counters;
      for (const CountedGpu& gpu : counted.gpus) ASSERT_EQ(sum_of(gpu), counted.until) << "recording " << i;
      ASSERT_EQ(counters.at("headroom_elapsed_seconds_total"), counted.until);
    } while (until < whole.meta.end);
    ASSERT_EQ(counted.until, whole.meta.end - whole.meta.start);
  }
}

// A task that computes for a minute, and then fails.
Recording a_task_that_fails() {
  RecordingBuilder builder(120);
  builder.gpu(0, [](double) { return 1.0; });
  builder.task({"long", 10, {0}, 0, 60, 0, "failed"}).task("next", 11, {0}, 60, 120);
  return builder.build();
}

TEST(CountOn, WhatATaskComputedStaysUnderWayAndIsDiscardedBesideThat) {
  const Recording whole = a_task_that_fails();
  Counted counted;
  const auto look = [&](double at) {
    const Explanation explanation = explain(grown_to(whole, RecordingBuilder::at(at)));
    count_on(counted, explanation, countable(explanation));
    return explanation;
  };
  const auto told = [&](Account account) { return counted.gpus.at(0).accounts[static_cast<std::size_t>(account)]; };
  look(55);
  const Nanos under_way = told(Account::kUnderWay);
  EXPECT_GT(under_way, 30 * kSecond);
  EXPECT_EQ(counted.gpus[0].discarded, 0);
  const Explanation later = look(90);
  EXPECT_EQ(later.ledger.total(Account::kUnderWay, 0),
            later.ledger.busy(0) - later.ledger.total(Account::kDiscarded, 0))
      << "the ledger itself takes it back";
  EXPECT_GE(told(Account::kUnderWay), under_way);
  EXPECT_EQ(counted.gpus[0].discarded, later.ledger.total(Account::kDiscarded, 0));
  look(120);
  EXPECT_EQ(sum_of(counted.gpus[0]), 120 * kSecond);
  EXPECT_GT(counted.gpus[0].useful, 50 * kSecond);
}

TEST(CountOn, WhatWasNeverToldBeforeIsTheLedger) {
  const Recording whole = a_task_that_fails();
  const Explanation explanation = explain(whole);
  Counted counted;
  count_on(counted, explanation, countable(explanation));
  for (const AccountInfo& account : kAccounts)
    EXPECT_EQ(counted.gpus.at(0).accounts[static_cast<std::size_t>(account.id)],
              explanation.ledger.total(account.id, 0))
        << account.cause;
}

TEST(CountOn, TheLastSecondsOfWhatGoesOnAreNotCountedYet) {
  const Recording whole = a_task_that_fails();
  EXPECT_EQ(countable(explain(grown_to(whole, RecordingBuilder::at(50)))), 30 * kSecond);
  EXPECT_EQ(countable(explain(grown_to(whole, RecordingBuilder::at(10)))), 0);
  EXPECT_EQ(countable(explain(whole)), 120 * kSecond);
  Recording rare = grown_to(whole, RecordingBuilder::at(110));
  rare.meta.interval = 30 * kSecond;
  EXPECT_EQ(countable(explain(rare)), 20 * kSecond);
}

TEST(CountOn, AnotherRecordingIsCountedFromItsStart) {
  Recording first = a_task_that_fails();
  first.meta.id = "a";
  Counted counted;
  count_on(counted, explain(first), 100 * kSecond);
  Recording second = RecordingBuilder(10).gpu(0, [](double) { return 0.0; }).build();
  second.meta.id = "b";
  count_on(counted, explain(second), 10 * kSecond);
  EXPECT_EQ(counted.recording, "b");
  EXPECT_EQ(sum_of(counted.gpus.at(0)), 10 * kSecond);
}

TEST(CountOn, AGpuThatIsUsedLaterIsCountedFromTheStartToo) {
  Recording two = RecordingBuilder(50).gpu(0, [](double) { return 1.0; }).gpu(1, [](double) { return 0.5; }).build();
  Recording one = RecordingBuilder(50).gpu(0, [](double) { return 1.0; }).build();
  Counted counted;
  count_on(counted, explain(one), 20 * kSecond);
  count_on(counted, explain(two), 30 * kSecond);
  ASSERT_EQ(counted.gpus.size(), 2U);
  EXPECT_EQ(sum_of(counted.gpus[1]), 30 * kSecond);
  count_on(counted, explain(one), 40 * kSecond);  // its time goes on, whatever it is now
  EXPECT_EQ(sum_of(counted.gpus[1]), 40 * kSecond);
}

TEST(CountedText, IsReadAsItWasWritten) {
  Recording whole = a_task_that_fails();
  whole.meta.id = "00ff";
  Counted counted;
  count_on(counted, explain(whole), 70 * kSecond);
  EXPECT_EQ(counted_of(to_text(counted)), counted);
  for (const char* bad :
       {"", "headroom counted 2\na\t0\n", "headroom counted 1\na\t-1\n", "headroom counted 1\na\t5\nG\t0\t0\n",
        "headroom counted 1\na\t5\nG\t0\t0\tuseful=6\n", "headroom counted 1\na\t5\nG\t0\t0\tbusy=5\n",
        "headroom counted 1\na\t5\nG\t0\t0\tuseful=9\tinput=-4\n"})
    EXPECT_FALSE(counted_of(bad)) << bad;
  EXPECT_TRUE(counted_of("headroom counted 1\na\t5\nG\t0\t0\tuseful=5\n"));
}

}  // namespace
}  // namespace headroom::exposition
