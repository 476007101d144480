// SPDX-License-Identifier: Apache-2.0
#include "batch/history.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "base/fd.h"
#include "batch/history_plan.h"

namespace headroom::batch {
namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headroom-history-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file() const { return path_ + "/history.jsonl"; }

 private:
  std::string path_;
};

Observation seen(const std::string& task, double duration_seconds) {
  return {"train {s}", "A6000", task,   static_cast<Nanos>(duration_seconds * 1e9), false, std::int64_t{100}, 0.5,
          1.0,         {},      kSecond};
}

// Beside others a task's time is longer, and its share of a core smaller: that is no sign that it needs less.
TEST(History, SharesOfTasksBesideOthersRaiseWhatIsKnownAndDoNotLowerIt) {
  History history;
  const auto cores = [&](double seen_cores, bool alone, Shares of_group = {}) {
    Observation one = seen("a", 2);
    one.alone = alone, one.cores = seen_cores, one.of_group_alone = of_group;
    history.add(one, 1);
    return history.find("train {s}", "A6000")->cores.value();
  };
  EXPECT_NEAR(cores(0.4, true), 0.4, 1e-9);
  EXPECT_NEAR(cores(0.1, false), 0.4, 1e-9);
  EXPECT_NEAR(cores(0.6, false), 0.42, 1e-9);
  EXPECT_NEAR(cores(0.32, true), 0.39, 1e-9);
  EXPECT_NEAR(cores(0.1, false, {.cores = 0.29}), 0.36, 1e-9) << "what others of its group used alone";
}

TEST(DurationStat, MeanAndVarianceOfTheLogarithm) {
  DurationStat stat;
  update(stat, 1 * kSecond);
  EXPECT_EQ(stat, (DurationStat{1, 0, 0}));
  update(stat, static_cast<Nanos>(std::exp(2.0) * 1e9));
  EXPECT_NEAR(stat.log_mean, 1, 1e-6);
  EXPECT_NEAR(stat.log_variance, 1, 1e-6);
}

TEST(DurationStat, AChangeIsBelievedAfterAFewRuns) {
  DurationStat stat;
  for (int i = 0; i < 1000; ++i) update(stat, 1 * kSecond);
  for (int i = 0; i < 25; ++i) update(stat, 10 * kSecond);
  EXPECT_GT(seconds(expectation(stat)->expected), 8);
}

TEST(DurationStat, TheIntervalNarrowsWithRunsAndHoldsTheMean) {
  DurationStat stat;
  EXPECT_FALSE(expectation(stat));
  double width = 1e9;
  for (int i = 0; i < 20; ++i) {
    update(stat, 100 * kSecond);
    const auto found = *expectation(stat);
    EXPECT_NEAR(seconds(found.expected), 100, 1e-3);
    EXPECT_LT(found.low, found.expected);
    EXPECT_GT(found.high, found.expected);
    EXPECT_LT(seconds(found.high - found.low), width);
    width = seconds(found.high - found.low);
  }
  for (const Nanos odd : {Nanos{0}, Nanos{-5}, INT64_MAX}) update(stat, odd);
  EXPECT_TRUE(std::isfinite(stat.log_mean));
}

TEST(History, ATaskIsKnownByItselfAndItsCommandHelpsTheOthers) {
  History history;
  history.add(seen("a", 10), 1000);
  history.add(seen("b", 40), 2000);
  EXPECT_NEAR(seconds(history.expected("train {s}", "A6000", "a")->expected), 10, 1e-6);
  EXPECT_TRUE(history.expected("train {s}", "A6000", "a")->same_task);
  const auto other = history.expected("train {s}", "A6000", "never ran");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->same_task);
  EXPECT_NEAR(seconds(other->expected), 20, 1e-6);
  EXPECT_FALSE(history.expected("train {s}", "H200", "a"));
  EXPECT_EQ(history.find("train {s}", "A6000")->peak_gpu_bytes, 100);
}

TEST(History, AloneRestsOnRunsThatWereAlone) {
  History history;
  Observation run = seen("a", 6.3);
  history.add(run, 1);
  EXPECT_FALSE(history.took_alone("train {s}", "A6000", "a"));
  run.alone = true, run.duration = 2 * kSecond;
  history.add(run, 2);
  run.alone = false, run.duration = 6 * kSecond;
  history.add(run, 3);
  const History again = History::parse(history.text());
  EXPECT_NEAR(seconds(again.took_alone("train {s}", "A6000", "a").value()), 2, 1e-6);
  EXPECT_GT(seconds(again.expected("train {s}", "A6000", "a")->expected), 3) << "all runs tell how long it may take";
  EXPECT_FALSE(again.took_alone("train {s}", "A6000", "b")) << "another task may be of another length";
  EXPECT_FALSE(again.took_alone("train {s}", "H200", "a"));
}

TEST(History, AFileThatDoesNotTellThemApartKnowsNobodyAlone) {
  const History history =
      History::parse(R"({"command":"c","gpu":"G","log_mean":0.7,"log_variance":0.01,"runs":2,"seen":1,"task":"t"})");
  EXPECT_EQ(history.damaged(), 0);
  EXPECT_TRUE(history.expected("c", "G", "t"));
  EXPECT_FALSE(history.took_alone("c", "G", "t"));
}

TEST(History, WhatIsWrittenIsRead) {
  History history;
  for (int i = 0; i < 5; ++i) history.add(seen(std::to_string(i), i + 1), i);
  const History again = History::parse(history.text());
  EXPECT_EQ(again.damaged(), 0);
  EXPECT_EQ(again.text(), history.text());
}

TEST(History, BatchesAtTheSameTimeLoseNothing) {
  const Folder folder;
  History one = History::load(folder.file()), two = History::load(folder.file());
  one.add(seen("a", 10), 1);
  two.add(seen("b", 20), 2);
  ASSERT_TRUE(one.save(folder.file()));
  ASSERT_TRUE(two.save(folder.file()));
  one.add(seen("c", 30), 3);
  ASSERT_TRUE(one.save(folder.file()));
  ASSERT_TRUE(one.save(folder.file()));  // nothing new: nothing is counted twice
  const History all = History::load(folder.file());
  EXPECT_EQ(all.find("train {s}", "A6000")->duration.count, 3);
  for (const char* task : {"a", "b", "c"}) EXPECT_TRUE(all.expected("train {s}", "A6000", task)->same_task);
}

TEST(History, KeepsNoSecretAndKnowsACommandByWhatIsLeft) {
  const Folder folder;
  Observation observation = seen("a", 4);
  observation.command = "train --password=hunter22sekret {s}";
  History history;
  history.add(observation, 7);
  ASSERT_TRUE(history.save(folder.file()));
  const std::string text = *read_file(folder.file());
  EXPECT_EQ(text.find("hunter22"), std::string::npos) << text;
  EXPECT_TRUE(History::load(folder.file()).expected(observation.command, "A6000", "a"));
  struct stat info {};
  ASSERT_EQ(::stat((folder.file() + ".lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  std::string older = text;
  for (auto at = older.find("***"); at != std::string::npos; at = older.find("***")) older.replace(at, 3, "hunter22");
  EXPECT_EQ(History::parse(older).text(), text) << "of a version that kept it as it was";
}

TEST(History, DamageCostsTheDamagedLinesOnly) {
  History history;
  history.add(seen("a", 10), 1);
  history.add(seen("b", 20), 1);
  std::string text = history.text();
  text.insert(text.find('\n') + 1,
              "{\"command\": 3}\nnot json\n[]\n{\"command\":\"x\",\"gpu\":\"\",\"runs\":1,\"log_mean\":1e300}\n");
  const History damaged = History::parse(text + "{\"comm");
  EXPECT_EQ(damaged.damaged(), 5);
  EXPECT_EQ(damaged.text(), history.text());
  for (std::size_t size = 0; size < text.size(); ++size) (void)History::parse(text.substr(0, size));
  EXPECT_EQ(History::load("/no/such/file").commands().size(), 0U);
}

TEST(History, ALockedFileIsWrittenLater) {
  const Folder folder;
  History history;
  history.add(seen("a", 10), 1);
  const auto lock = open_write(folder.file() + ".lock");
  ASSERT_TRUE(lock);
  ASSERT_EQ(::flock(lock->get(), LOCK_EX), 0);
  EXPECT_EQ(history.save(folder.file()).error().code, Errc::kBusy);
  ::flock(lock->get(), LOCK_UN);
  EXPECT_TRUE(history.save(folder.file()));
  EXPECT_TRUE(History::load(folder.file()).expected("train {s}", "A6000", "a"));
}

TEST(History, IsWhatThePlannerIsTold) {
  TaskSpec task;
  task.name = "a";
  task.group = "g";
  task.argv = {"train", "x"};
  task.command_template = "train {s}";
  Attempt attempt;
  attempt.gpu_uuids = {"GPU-1"};
  attempt.start = 100 * kSecond;
  attempt.end = 140 * kSecond;
  attempt.cpu_time = 10 * kSecond;
  attempt.gpu_time = 5 * kSecond;
  attempt.peak_gpu_bytes = 7;
  EXPECT_FALSE(observation_of(task, attempt, "A6000"));  // it did not succeed
  attempt.outcome = AttemptOutcome::kSucceeded;
  const auto shared = observation_of(task, attempt, "A6000", 2);  // it shared the GPU, and took twice as long
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->duration, 20 * kSecond);
  EXPECT_FALSE(shared->alone);
  EXPECT_TRUE(observation_of(task, attempt, "A6000", 1, true)->alone);
  EXPECT_FALSE(shared->cores) << "what it does alone is not known from company";
  EXPECT_FALSE(shared->gpu_util_ratio);
  attempt.end = 120 * kSecond;
  const auto alone = observation_of(task, attempt, "A6000");
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->duration, 20 * kSecond);
  EXPECT_EQ(alone->cores, 0.5);
  EXPECT_EQ(alone->gpu_util_ratio, 0.25);
  History history;
  history.add(*alone, 1);
  const auto expected = expected_durations(history, {"A6000", "H200"});
  EXPECT_NEAR(seconds(*expected(task)), 20, 1e-6);
  TaskSpec without = task;
  without.resources.gpus = 0;
  EXPECT_FALSE(expected(without));
  const std::vector<TaskSpec> specs{task};
  const auto plan = scheduler::plan_tasks(specs, expected);
  ASSERT_TRUE(plan);
  EXPECT_NEAR(seconds(*plan->tasks[0].expected), 20, 1e-6);
  const auto groups = group_histories(history, specs, *plan, {"A6000", "H200"});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].gpu_model, "A6000");
  EXPECT_EQ(groups[0].finished, 1);
  EXPECT_EQ(groups[0].peak_gpu_bytes, 7);
  EXPECT_NEAR(seconds(*groups[0].duration), 20, 1e-6);
}

}  // namespace
}  // namespace headroom::batch
