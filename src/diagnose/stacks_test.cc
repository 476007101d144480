// SPDX-License-Identifier: Apache-2.0
// What Python stacks add to the findings.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "analyze/testing.h"
#include "base/strings.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::SizeIs;

const std::string kLoader = "fetch (/x/site-packages/torch/utils/data/_utils/fetch.py:1)";

// Each second: kernels for half of it, `frames` in the other half.
Explanation half(double cpu, const std::vector<std::string>& frames, const std::vector<std::string>& rare = {}) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, cpu).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    const double from = rare.empty() ? i + 0.5 : i + 0.7;
    builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "Net.forward (/u/net.py:2)"});
    if (!rare.empty()) builder.stacks(7, i + 0.5, from, rare);
    builder.stacks(7, from, i + 1, frames);
  }
  return explain(builder.build());
}

TEST(StackFindings, NameTheFunctionAndTheNextOne) {
  const Explanation e =
      half(1, {"train (/u/train.py:1)", "collect (/u/train.py:9)"}, {"train (/u/train.py:1)", "log (/u/train.py:20)"});
  const Finding& first = e.findings.front();
  EXPECT_THAT(first.title, EndsWith("for code of the training process: collect (train.py) and log (train.py)"));
  EXPECT_EQ(e.ledger.places.at(static_cast<std::size_t>(first.code.value())), "collect (train.py)");
  EXPECT_EQ(first.evidence.front(), "its Python stacks say: collect (train.py) 60 %, log (train.py) 40 % of this time");
  EXPECT_TRUE(first.tiers.has("Y"));
  EXPECT_THAT(first.advice, Not(HasSubstr("stacks --pid")));
}

TEST(StackFindings, NameTheLineThatHasMostOfTheIdleTime) {
  const auto told = [](const std::vector<std::string>& lines, bool ran = true) {
    RecordingBuilder builder(60);
    if (ran) builder.lines();
    builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.5, {"train (/u/train.py:7)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.5, i + 1,
                     {fmt::format("train (/u/train.py:{})", lines[static_cast<std::size_t>(i) % lines.size()])});
    }
    return explain(builder.build());
  };
  const Explanation one = told({"5", "5", "6"});
  EXPECT_THAT(one.findings.front().title, EndsWith(": train (train.py:5)"));
  EXPECT_EQ(one.findings.front().evidence.front(),
            "its Python stacks say: train (train.py) 100 % of this time; of it 67 % at line 5, 33 % at line 6");
  EXPECT_THAT(told({"5", "5", "5", "5", "5", "5", "5", "5", "6"}).findings.front().evidence.front(),
              EndsWith("; most of it at line 5"));
  EXPECT_THAT(one.headline, HasSubstr("mostly train (train.py:5)."));
  EXPECT_EQ(one.ledger.places.at(static_cast<std::size_t>(one.findings.front().code.value())), "train (train.py)");
  EXPECT_THAT(told({"4", "5", "6"}).findings.front().title, EndsWith(": train (train.py)")) << "none has most of it";
  EXPECT_THAT(told({"4", "5", "6"}).findings.front().evidence.front(),
              EndsWith("; of it 33 % at line 4, 33 % at line 5"));
  EXPECT_THAT(told({"5"}, false).findings.front().title, EndsWith(": train (train.py)")) << "where the function begins";
}

// Half of each second is idle, and three quarters of it the thread was at code of which nothing says whether kernels
// ran.
// A module's own code is at other lines before the first kernel than after it.
TEST(StackFindings, TheLineOfAStartIsOfThatTimeAlone) {
  RecordingBuilder builder(60);
  builder.lines().gpu(0, [](double t) { return t < 20 ? 0.0 : 0.5; }).process(7, 1, 0, 60, 1).context(7, 0, 1, 60);
  builder.stacks(7, 0, 20, {"<module> (/u/train.py:8)"});
  for (int i = 20; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, {"<module> (/u/train.py:44)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.5, i + 1, {"<module> (/u/train.py:45)"});
  }
  const Explanation e = explain(builder.build());
  const auto title = [&](Account account) {
    for (const Finding& finding : e.findings)
      if (!finding.claims.empty() && finding.claims.front().account == account) return finding.title;
    return std::string();
  };
  EXPECT_THAT(title(Account::kStartup), EndsWith("<module> (train.py:8)"));
  EXPECT_THAT(title(Account::kHostCode), EndsWith("<module> (train.py:45)"));
}

// Its kernels are over, and it cannot go on: another thread has the interpreter all the while.
TEST(StackFindings, WhoWaitsForTheInterpreterAfterItsKernelsIsNotAtSynchronisationPoints) {
  const auto first = [](bool has_interpreter) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.5; }).sleeping_in(WaitChannel::kFutex, 0.8);
    builder.process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
    builder.stacks(7, 0, 60, {"train (/u/train.py:7)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks({7, 0, 60, {"tidy (/u/history.py:1)"}, 8, has_interpreter});
    return explain(builder.build());
  };
  const Explanation held = first(true);
  EXPECT_EQ(held.findings.front().cause, Cause::kGilContention);
  EXPECT_THAT(held.findings.front().title, HasSubstr("waits for the interpreter (GIL)"));
  EXPECT_THAT(held.headline, HasSubstr("for Python's interpreter (GIL)"));
  EXPECT_THAT(first(false).findings.front().candidates, Contains(Cause::kSyncPoints));
}

TEST(StackFindings, CodeThatKernelsMayHaveRunBesideIsNotBlamedForAllOfIt) {
  const std::string prepare = "prepare (/u/train.py:3)", write = "write (/u/train.py:7)";
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", prepare});
    builder.stacks(7, i + 0.5, i + 0.75, {"train (/u/train.py:1)", write});
    builder.stacks(7, i + 0.75, i + 1, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
  }
  const Explanation e = explain(builder.build());
  const Finding& first = e.findings.front();
  EXPECT_THAT(first.title, EndsWith("for code of the training process")) << "by these looks either may be all of it";
  EXPECT_FALSE(first.code);
  EXPECT_EQ(
      first.evidence.front(),
      "its Python stacks say: prepare (train.py) 44 to 100 %, write (train.py) 0 to 56 % of this time (kernels ran "
      "beside a part of such code, and nothing tells which)");
  EXPECT_THAT(e.headline, HasSubstr("% for code of the job."));
}

TEST(StackFindings, TheHeadlineNamesTheFunctionThatHasMostOfIt) {
  const std::vector<std::string> collect{"train (/u/train.py:1)", "collect (/u/train.py:9)"};
  const std::vector<std::string> log{"train (/u/train.py:1)", "log (/u/train.py:20)"};
  EXPECT_THAT(half(0.01, collect).headline, HasSubstr("% while the job slept or waited, mostly collect (train.py)."));
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "Net.forward (/u/net.py:2)"});
    builder.stacks(7, i + 0.5, i + 1, {"train (/u/train.py:1)", fmt::format("part_{} (/u/train.py:9)", i % 3)});
  }
  EXPECT_THAT(explain(builder.build()).headline, HasSubstr("% for code of the job."));
}

TEST(StackFindings, TheHeadlineOfSomebodyAtATerminalBlamesNoCode) {
  const auto headline = [](WaitChannel wait) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double t) { return std::fmod(t, 20) < 6 ? 1.0 : 0.0; }).sleeping_in(wait);
    builder.process(7, 1, 0, 60, 0.001).context(7, 0, 0, 60);
    builder.stacks(7, 0, 60, {"<module> (/u/person.py:1)"});
    return explain(builder.build()).headline;
  };
  EXPECT_THAT(headline(WaitChannel::kTerminal), HasSubstr("% for somebody."));
  EXPECT_THAT(headline(WaitChannel::kPipe), HasSubstr("% while the job slept or waited, mostly <module> (person.py)."));
}

TEST(StackFindings, WhereTheProcessWaitsForItsKernelsIsSaid) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; }).process(7, 1, 0, 60, 0.6).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.7,
                   {"train (/u/train.py:1)", "read_loss (/u/train.py:4)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.7, i + 1, {"train (/u/train.py:1)", "prepare (/u/train.py:9)"});
  }
  const Explanation e = explain(builder.build());
  EXPECT_THAT(e.findings.front().title, EndsWith("prepare (train.py)"));
  EXPECT_THAT(e.findings.front().evidence, Contains(HasSubstr("it waits for its kernels in read_loss (train.py)")));
}

TEST(StackFindings, NothingIsSaidToRunThatSleeps) {
  const Finding first = half(0.01, {"train (/u/train.py:1)", "poll (/u/train.py:9)"}).findings.front();
  EXPECT_EQ(first.title, "The GPU waits while the training process sleeps or waits itself: poll (train.py)");
  EXPECT_THAT(first.candidates, Not(Contains(Cause::kLaunchBound)));
}

TEST(StackFindings, WhoSleepsOnAPipeIsToldToSeeItsOtherEnd) {
  const auto first = [](WaitChannel wait) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.3; }).sleeping_in(wait).process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
    builder.stacks(7, 0, 60, {"<module> (/u/reads_its_input.py:1)"});
    return explain(builder.build()).findings.front();
  };
  EXPECT_THAT(first(WaitChannel::kPipe).advice, HasSubstr("the other end of the pipe"));
  EXPECT_THAT(first(WaitChannel::kPipe).evidence,
              Contains(HasSubstr("its main thread was on a pipe or local socket (100 %)")));
  EXPECT_THAT(first(WaitChannel::kFutex).advice, Not(HasSubstr("pipe")));
}

// Kernels for half of each second, and 0.67 of it at waits for them: of 20 looks a second for 3 s that may be chance.
TEST(StackFindings, ThatAGpuRunsDryIsSaidWithWhatMayBeChance) {
  const auto dry = [](int length) {
    RecordingBuilder builder(length, 0.2);
    builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, length, 0.05).context(7, 0, 0, length);
    for (int i = 0; i < length; ++i) {
      builder.stacks(7, i, i + 0.67, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.67, i + 1, {"train (/u/train.py:1)", "prepare (/u/train.py:9)"});
    }
    const Explanation e = explain(builder.build());
    for (const Finding& finding : e.findings)
      if (finding.title.find("runs dry") != std::string::npos) return finding;
    return Finding{.title = e.headline};
  };
  EXPECT_THAT(dry(3).evidence, Contains(HasSubstr("were at waits for kernels: of so few")));
  EXPECT_EQ(dry(3).confidence, Confidence::kLow);
  EXPECT_THAT(dry(120).evidence, Not(Contains(HasSubstr("chance")))) << dry(120).title;
  EXPECT_EQ(dry(120).confidence, Confidence::kMedium);
}

// A pipe of multiprocessing has one of its own processes at its other end.
TEST(StackFindings, WhoWaitsForAProcessOfItsOwnIsToldToSeeThat) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.3; }).sleeping_in(WaitChannel::kPipe);
  builder.process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60).process(8, 7, 0, 60, 0.01);
  builder.stacks(7, 0, 60,
                 {"<module> (/u/train.py:1)", "recv_bytes (/usr/lib/python3.11/multiprocessing/connection.py:1)"});
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.advice, AllOf(HasSubstr("the processes that it started"), Not(HasSubstr("standard input"))));
  EXPECT_EQ(first.candidates.front(), Cause::kInputTooFewWorkers);
}

// Stacks that tell validation apart tell also what it is not.
TEST(StackFindings, WhatIsSeenOutsideOfValidationIsNoPartOfItsBound) {
  RecordingBuilder builder(60);
  const auto validates = [](int i) { return i >= 20 && i < 30; };
  builder.gpu(0, [&](double t) { return t > 20 && t <= 30 ? 0.0 : 0.6; });
  builder.process(7, 1, 0, 60, 0.3).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    const std::string inner = validates(i) ? "evaluate (/u/a.py:7)" : "log_metrics (/u/a.py:9)";
    builder.stacks(7, i, i + (validates(i) ? 1 : 0.4), {"<module> (/u/a.py:1)", inner});
    if (!validates(i)) builder.stacks(7, i + 0.4, i + 1, {"<module> (/u/a.py:1)", "Net.forward (/u/net.py:2)"});
  }
  const Explanation e = explain(builder.build());
  const Finding* validation = find_single(e, Cause::kValidation);
  ASSERT_TRUE(validation && validation->gain) << e.headline;
  EXPECT_NEAR(validation->gain->high, 60.0 / 50, 0.02) << validation->bound;
}

TEST(StackFindings, ALoaderInTheTrainingProcessIsNoSlowStorage) {
  const std::vector<std::string> loader{"train (/u/train.py:1)", kLoader, "decode (/u/data.py:3)"};
  const Explanation runs = half(1, loader);
  const Finding* finding = find_single(runs, Cause::kInputInMainProcess);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->title, EndsWith(": decode (data.py)"));
  EXPECT_THAT(finding->advice, HasSubstr("num_workers"));
  const Explanation sleeps = half(0.01, loader);
  EXPECT_EQ(find_single(sleeps, Cause::kInputInMainProcess), nullptr);
  EXPECT_THAT(sleeps.findings.front().candidates, Contains(Cause::kInputInMainProcess));
  EXPECT_THAT(sleeps.findings.front().candidates, Contains(Cause::kSlowStorage));
}

TEST(StackFindings, ValidationAndSynchronisationHaveTheirOwn) {
  const Explanation e = half(1, {"train (/u/train.py:1)", "validate (/u/train.py:9)"});
  ASSERT_NE(find_single(e, Cause::kValidation), nullptr);
  EXPECT_THAT(find_single(e, Cause::kValidation)->title, EndsWith("validates: validate (train.py)"));
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  builder.stacks(7, 0, 60, {"train (/u/train.py:1)", "synchronize (/x/site-packages/torch/cuda/__init__.py:1)"});
  const Explanation sync = explain(builder.build());
  EXPECT_THAT(sync.findings.front().candidates, Contains(Cause::kSyncPoints));
}

TEST(StackFindings, AGpuHeldByCodeThatChangesIsHeldAllTheSame) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t <= 30 ? 1.0 : 0.0; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  for (int i = 30; i < 60; i += 2)
    builder.stacks(7, i, i + 1, {"train (/u/train.py:1)", "a (/u/a.py:1)"}).stacks(7, i + 1, i + 2, {"b (/u/b.py:1)"});
  const Explanation e = explain(builder.build());
  const Finding& held = e.findings.front();
  EXPECT_EQ(held.title, "The GPU was held after its last kernel");
  EXPECT_NEAR(seconds(held.cost()), 31, 0.1);
  EXPECT_THAT(held.evidence, Contains(HasSubstr("for 31.0 s")));
}

TEST(StackFindings, AFewSecondsOfWorkAfterTheLastKernelAreNamed) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t <= 16 ? 1.0 : 0.0; }).process(7, 1, 0, 20, 1).context(7, 0, 0, 20);
  builder.stacks(7, 16, 20, {"main (/u/train.py:1)", "export_results (/u/train.py:9)"});
  const Explanation e = explain(builder.build());
  EXPECT_EQ(e.findings.front().title, "The GPU was held after its last kernel: export_results (train.py)");
  EXPECT_THAT(e.findings.front().advice, HasSubstr("let what runs after the last kernel go without the GPU"));
}

TEST(StackFindings, WithoutStacksNothingIsNamed) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  for (const Finding& finding : explain(builder.build()).findings) {
    EXPECT_FALSE(finding.tiers.has("Y"));
    EXPECT_THAT(finding.title, Not(HasSubstr(".py)")));
  }
}

TEST(StackFindings, OfProcessesThatWaitForOneAnotherTheOneThatIsWaitedForIsNamed) {
  RecordingBuilder builder(60);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double) { return 0.4; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.95).context(7, 0, 0, 60).context(8, 1, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 1, {"train (/u/train.py:1)", "barrier (/u/train.py:7)"});
    builder.stacks(8, i, i + 1, {"train (/u/train.py:1)", "score (/u/train.py:30)"});
  }
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.title, AllOf(HasSubstr("Process 8 of the job"), EndsWith(": score (train.py)")));
  EXPECT_THAT(first.evidence.front(), AllOf(HasSubstr("the busiest one's"), Not(HasSubstr("barrier"))));
}

TEST(StackFindings, OfALoaderWithWorkersTheirFunctionIsNamed) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
  for (const std::int64_t worker : {20, 21}) builder.process(worker, 7, 0, 60, 0.98);
  const std::string wait = "_try_get_data (/x/site-packages/torch/utils/data/dataloader.py:1)";
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 1, {"train (/u/train.py:1)", wait});
    for (const std::int64_t worker : {20, 21})
      builder.stacks(
          worker, i, i + 1,
          {"_worker_loop (/x/site-packages/torch/utils/data/_utils/worker.py:1)", kLoader, "augment (/u/data.py:3)"});
  }
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.title, EndsWith("loader: augment (data.py)"));
  EXPECT_THAT(first.evidence, Contains(HasSubstr("what its workers were at then, by their Python stacks: augment")));
  EXPECT_THAT(first.advice, Not(HasSubstr("hand over tensors")));
}

TEST(StackFindings, OfALoaderOfTheJobsOwnItsWorkersFunctionIsNamedAndNotWhereTheJobWaitsForThem) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
  builder.process(20, 7, 0, 60, 0.98);
  const std::string lib = "/usr/lib/python3.11/multiprocessing/";
  builder.stacks(7, 0, 60, {"train (/u/train.py:1)", "batch (/u/train.py:70)", "_recv (" + lib + "connection.py:1)"});
  builder.stacks(20, 0, 60,
                 {"_bootstrap (" + lib + "process.py:1)", "worker (/u/train.py:40)", "load_batch (/u/train.py:30)"});
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.title, AllOf(EndsWith(": load_batch (train.py)"), Not(HasSubstr("mostly"))));
  EXPECT_THAT(first.evidence.front(), HasSubstr("batch (train.py) 100 % of this time"));
}

// Each second: kernels for 0.4 s; the loader's worker at `frames` all the time.
Explanation with_worker(double worker_cpu, const std::vector<std::string>& frames, WaitChannel wait) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
  builder.sleeping_in(wait).process(20, 7, 0, 60, worker_cpu);
  builder.stacks(7, 0, 60,
                 {"train (/u/train.py:1)", "_try_get_data (/x/site-packages/torch/utils/data/dataloader.py:1)"});
  builder.stacks(20, 0, 60, frames);
  return explain(builder.build());
}

TEST(StackFindings, AWorkerThatWaitsInItsOwnCodeIsNoWorkerTooFew) {
  const std::string loop = "_worker_loop (/x/site-packages/torch/utils/data/_utils/worker.py:1)";
  const Finding waits =
      with_worker(0.1, {loop, kLoader, "read_record (/u/data.py:3)"}, WaitChannel::kPipe).findings.front();
  EXPECT_EQ(waits.title, "The GPU waits for the data loader, whose workers wait themselves: read_record (data.py)");
  EXPECT_EQ(waits.candidates.front(), Cause::kSlowStorage);
  const Finding runs =
      with_worker(0.98, {loop, kLoader, "read_record (/u/data.py:3)"}, WaitChannel::kRunning).findings.front();
  EXPECT_EQ(runs.cause, Cause::kInputTooFewWorkers);
  const Finding idle =
      with_worker(0.1, {loop, "Queue.get (/usr/lib/python3.11/multiprocessing/queues.py:9)"}, WaitChannel::kPipe)
          .findings.front();
  EXPECT_THAT(idle.title, Not(HasSubstr("wait themselves")));
  EXPECT_THAT(idle.title, Not(HasSubstr(".py)")));
}

// Each second: kernels for half of it, then code of the main thread beside a thread that computes.
Explanation beside_a_thread(double main_cpu, bool has_interpreter, WaitChannel wait) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).sleeping_in(wait, 0.9);
  builder.process(7, 1, 0, 60, main_cpu).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.5, i + 1, {"train (/u/train.py:1)", "prepare (/u/train.py:9)"});
  }
  builder.stacks({7, 0, 60, {"compress (/u/history.py:1)"}, 8, has_interpreter});
  return explain(builder.build());
}

// Threads of libraries, such as those that compute gradients, run on the CPU, too.
TEST(StackFindings, WithOneThreadOfPythonNobodyWaitsForTheInterpreter) {
  const auto candidates = [](bool another) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.5; }).sleeping_in(WaitChannel::kRunning, 0.6);
    builder.process(7, 1, 0, 60, 0.5).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.5, i + 1, {"train (/u/train.py:1)", "mix (/u/train.py:9)"});
    }
    if (another) builder.stacks(7, 0, 60, {"Queue.get (/usr/lib/python3.11/queue.py:1)"}, 8);
    return explain(builder.build()).findings.front().candidates;
  };
  EXPECT_THAT(candidates(true), Contains(Cause::kGilContention));
  EXPECT_THAT(candidates(false), AllOf(SizeIs(Ge(2)), Not(Contains(Cause::kGilContention))));
}

TEST(StackFindings, AThreadThatHasTheInterpreterIsNamed) {
  const Finding held = beside_a_thread(0.4, true, WaitChannel::kFutex).findings.front();
  EXPECT_THAT(held.title, EndsWith("prepare (train.py)"));
  EXPECT_THAT(held.evidence.front(), HasSubstr("another thread had the interpreter (GIL) in 100 % of them: compress"));
  EXPECT_EQ(held.cause, Cause::kGilContention) << "it had it in most of this time";
  const Finding apart = beside_a_thread(0.4, false, WaitChannel::kRunning).findings.front();
  EXPECT_THAT(apart.evidence.front(), Not(HasSubstr("another thread")));
}

// The main thread waits at a queue while two others are at something: which of them it waits for no look tells,
// whichever was listed first. One that has the interpreter for most of that time is it; one that has it now and then
// need not be.
TEST(StackFindings, OfTwoThreadsAtSomethingNeitherIsNamedAlone) {
  const auto title = [](double monitor_holds, bool fetch_first) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.5; }).sleeping_in(WaitChannel::kFutex, 0.9);
    builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
    const int fetch = fetch_first ? 8 : 9, monitor = fetch_first ? 9 : 8;
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.5, i + 1, {"train (/u/train.py:1)", "Queue.get (/usr/lib/python3.11/queue.py:1)"});
    }
    if (fetch_first) builder.stacks(7, 0, 60, {"fetch (/u/train.py:3)"}, fetch);
    for (int i = 0; i < 60; ++i) {
      builder.stacks({7, 1.0 * i, i + monitor_holds, {"monitor (/u/train.py:7)"}, monitor, true});
      builder.stacks(7, i + monitor_holds, i + 1, {"monitor (/u/train.py:7)"}, monitor);
    }
    if (!fetch_first) builder.stacks(7, 0, 60, {"fetch (/u/train.py:3)"}, fetch);
    return explain(builder.build()).findings.front().title;
  };
  for (const bool fetch_first : {true, false}) {
    EXPECT_THAT(title(0, fetch_first), EndsWith(": fetch (train.py) or monitor (train.py)"));
    EXPECT_THAT(title(0.6, fetch_first), EndsWith(": fetch (train.py) or monitor (train.py)"));
    EXPECT_THAT(title(1, fetch_first), EndsWith(": monitor (train.py)"));
  }
}

// What comes through a queue of threads, or as a result, from a thread that is at work is input.
TEST(StackFindings, AThreadThatFeedsTheMainOneIsItsLoader) {
  const auto first = [](const std::string& wait, double threads_cpu) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.4; }).sleeping_in(WaitChannel::kFutex, threads_cpu);
    builder.process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.4, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.4, i + 1, {"train (/u/train.py:1)", wait});
    }
    builder.stacks({7, 0, 60, {"run (/u/data.py:1)", "decode (/u/data.py:9)"}, 8, threads_cpu > 0.5});
    return explain(builder.build()).findings.front();
  };
  for (const char* wait : {"Queue.get (/usr/lib/python3.11/queue.py:1)",
                           "Future.result (/usr/lib/python3.11/concurrent/futures/_base.py:1)",
                           "IMapIterator.next (/usr/lib/python3.11/multiprocessing/pool.py:1)",
                           "Condition.wait (/usr/lib/python3.11/threading.py:1)"}) {
    const Finding computes = first(wait, 1);
    EXPECT_EQ(computes.title,
              "The GPU waits for what another thread of the training process prepares: decode (data.py)");
    EXPECT_EQ(computes.cause, Cause::kInputTooFewWorkers) << wait;
    EXPECT_NEAR(seconds(computes.cost()), 36, 2);
    const Finding sleeps = first(wait, 0.05);
    EXPECT_THAT(sleeps.candidates, ElementsAre(Cause::kSlowStorage, Cause::kInputTooFewWorkers));
    EXPECT_THAT(sleeps.advice, HasSubstr("more threads"));
    EXPECT_TRUE(computes.by_threads && !computes.asleep && sleeps.by_threads && sleeps.asleep);
  }
  // Of its end, or of what it says, nobody knows what it is for.
  for (const char* wait :
       {"Thread.join (/usr/lib/python3.11/threading.py:1)", "Event.wait (/usr/lib/python3.11/threading.py:1)"}) {
    const Finding ends = first(wait, 1);
    EXPECT_THAT(ends.title,
                EndsWith("while the main thread waits for another thread of its process: decode (data.py)"));
    EXPECT_THAT(ends.candidates, AllOf(Contains(Cause::kValidation), Not(Contains(Cause::kGilContention))));
    EXPECT_THAT(ends.advice, HasSubstr("let the main thread go on meanwhile"));
  }
}

// What comes back from a call that has let go of the interpreter waits for it there, whatever the line.
TEST(StackFindings, WhoWaitsForTheInterpreterIsAtNoLine) {
  const auto title = [](bool has_interpreter) {
    RecordingBuilder builder(60);
    builder.lines().gpu(0, [](double) { return 0.5; }).sleeping_in(WaitChannel::kFutex, 0.9);
    builder.process(7, 1, 0, 60, 0.4).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.5, i + 1, {"train (/u/train.py:1)", "prepare (/u/train.py:9)"});
    }
    builder.stacks({7, 0, 60, {"compress (/u/history.py:1)"}, 8, has_interpreter});
    return explain(builder.build()).findings.front().title;
  };
  EXPECT_THAT(title(false), EndsWith(": prepare (train.py:9)"));
  EXPECT_THAT(title(true), EndsWith(": prepare (train.py)"));
}

// Each account has the line of its own: a wait for kernels that of the call that waits.
TEST(StackFindings, AWaitForKernelsHasItsOwnLine) {
  RecordingBuilder builder(60);
  builder.lines().gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.5).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.7,
                   {"train (/u/train.py:41)", "synchronize (/x/site-packages/torch/cuda/__init__.py:1)"});
    builder.stacks(7, i + 0.7, i + 1, {"train (/u/train.py:9)"});
  }
  const Explanation e = explain(builder.build());
  const auto of = [&](Account account) {
    const auto found = std::find_if(e.findings.begin(), e.findings.end(), [&](const Finding& finding) {
      return !finding.claims.empty() && finding.claims.front().account == account;
    });
    return found == e.findings.end() ? "" : found->title;
  };
  EXPECT_THAT(of(Account::kSync), EndsWith(": train (train.py:41)"));
  EXPECT_THAT(of(Account::kHostCode), EndsWith(": train (train.py:9)"));
}

// In training it waited there for a thread, too: only what it was at after the last kernel counts.
TEST(StackFindings, AThreadThatNeverComesIsWhatTheGpuIsHeldFor) {
  const std::string get = "Queue.get (/usr/lib/python3.11/queue.py:1)";
  const auto advice = [&](const std::string& at_end) {
    RecordingBuilder builder(40);
    builder.gpu(0, [](double t) { return t <= 20 ? 0.9 : 0.0; }).sleeping_in(WaitChannel::kFutex);
    builder.process(7, 1, 0, 40, 0.01).context(7, 0, 0, 40);
    builder.stacks(7, 0, 20, {"train (/u/train.py:1)", get}).stacks(7, 20, 40, {"train (/u/train.py:1)", at_end});
    builder.meta().exit_code = 1;
    const Finding held = explain(builder.build()).findings.front();
    EXPECT_THAT(held.title, HasSubstr("held after its last kernel"));
    return held.advice;
  };
  EXPECT_THAT(advice(get), HasSubstr("whether an exception had ended the thread that the main one waits for"));
  EXPECT_THAT(advice("time.sleep() (/u/train.py:1)"), Not(HasSubstr("exception")));
}

// The same function may be called by the main thread as well: then nothing tells that a thread feeds it.
TEST(StackFindings, WhatTheMainThreadRunsItselfIsNoThreadThatFeedsIt) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.4; }).sleeping_in(WaitChannel::kRunning, 0.2);
  builder.process(7, 1, 0, 60, 0.6).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.4, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.4, i + 0.9, {"train (/u/train.py:1)", "decode (/u/data.py:9)"});
    builder.stacks(7, i + 0.9, i + 1, {"train (/u/train.py:1)", "Queue.get (/usr/lib/python3.11/queue.py:1)"});
    builder.stacks(7, i + 0.9, i + 1, {"run (/u/data.py:1)", "decode (/u/data.py:9)"}, 8);
  }
  for (const Finding& finding : explain(builder.build()).findings) EXPECT_FALSE(finding.by_threads) << finding.title;
}

TEST(StackFindings, ASleepOfOnesOwnIsNoCallOfCuda) {
  const auto first = [](const std::string& call) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double t) { return std::fmod(t, 4) < 2 ? 1.0 : 0.0; });
    builder.sleeping_in(WaitChannel::kSleep).process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
    for (int i = 0; i < 60; i += 4) {
      builder.stacks(7, i, i + 2, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 2, i + 4, {"train (/u/train.py:1)", "until_there (/u/train.py:9)", call});
    }
    return explain(builder.build()).findings.front();
  };
  const Finding sleeps = first("time.sleep() (/u/train.py:11)");
  EXPECT_THAT(sleeps.title, HasSubstr("sleeps or waits itself: until_there (train.py)"));
  EXPECT_THAT(sleeps.advice, HasSubstr("look more often"));
  EXPECT_THAT(sleeps.candidates, Not(Contains(Cause::kPageableCopies)));
  const Finding other = first("ask() (/u/train.py:11)");
  EXPECT_THAT(other.advice, Not(HasSubstr("look more often")));
  EXPECT_THAT(other.candidates, Contains(Cause::kPageableCopies));
}

TEST(StackFindings, StartUpThatIsAtCodeWhichCostsLaterIsNoLoading) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t > 6 && std::fmod(t, 4) < 2 ? 1.0 : 0.0; });
  builder.process(7, 1, 0, 60, 0.01).context(7, 0, 0.5, 60).stacks(7, 0, 60, {"until_there (/u/train.py:9)"});
  const Explanation e = explain(builder.build());
  const auto startup = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return !finding.claims.empty() && finding.claims.front().account == Account::kStartup;
  });
  ASSERT_NE(startup, e.findings.end());
  EXPECT_EQ(startup->advice, "change until_there (train.py) first: it costs later, too");
}

TEST(StackFindings, ALockThatAnotherThreadHasIsSaid) {
  const Finding first = beside_a_thread(0.02, false, WaitChannel::kFutex).findings.front();
  EXPECT_EQ(first.title,
            "The GPU waits while the main thread of the training process waits on a lock: prepare (train.py)");
  EXPECT_THAT(first.evidence.front(), HasSubstr("another thread was at compress (history.py)"));
}

// Who has the lock may wait for something itself, and use no core; who sleeps by himself need not have it.
TEST(StackFindings, ALockMayBeThatOfAThreadThatWaits) {
  const auto first = [](const std::string& call) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.5; }).sleeping_in(WaitChannel::kFutex);
    builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(
          7, i + 0.5, i + 1,
          {"train (/u/train.py:1)", "tell (/u/train.py:9)", "info (/usr/lib/python3.11/logging/__init__.py:9)"});
    }
    builder.stacks(7, 0, 60, {"ship (/u/collect.py:1)", call}, 8);
    return explain(builder.build()).findings.front();
  };
  const Finding held = first("send() (/u/collect.py:4)");
  EXPECT_EQ(held.cause, Cause::kLoggingUpload);
  EXPECT_THAT(held.advice, HasSubstr("; see whether ship (collect.py) has that lock meanwhile"));
  EXPECT_THAT(first("time.sleep() (/u/collect.py:4)").advice, Not(HasSubstr("that lock")));
}

// For a part of each second the process hardly runs and is seen at a lock, in a line of its own that takes one.
TEST(StackFindings, AWaitForALockIsSaidWhereNobodyIsSeenToHaveIt) {
  const auto first = [](const std::string& other, WaitChannel wait) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.7; }).sleeping_in(wait).process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.7, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.7, i + 1, {"train (/u/train.py:1)", "note (/u/train.py:9)"});
    }
    if (!other.empty()) builder.stacks(7, 0, 60, {"write (/u/log.py:1)", other}, 8);
    return explain(builder.build()).findings.front();
  };
  const Finding locked = first("", WaitChannel::kFutex);
  EXPECT_EQ(locked.title,
            "The GPU waits while the main thread of the training process waits on a lock: note (train.py)");
  EXPECT_THAT(locked.candidates, Not(Contains(Cause::kInputInMainProcess)));
  EXPECT_THAT(locked.advice, HasSubstr("which thread or process has that lock"));
  EXPECT_THAT(first("time.sleep() (/u/log.py:4)", WaitChannel::kFutex).evidence.front(),
              HasSubstr("another thread slept in write (log.py): whether it has the lock meanwhile is not seen"));
  const Finding elsewhere = first("time.sleep() (/u/log.py:4)", WaitChannel::kPipe);
  EXPECT_THAT(elsewhere.title, Not(HasSubstr("lock")));
  EXPECT_THAT(elsewhere.evidence.front(), Not(HasSubstr("another thread")));
}

TEST(StackFindings, CoroutinesThatAllWaitAreToldFromCodeThatSleeps) {
  const auto first = [](bool loop) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.7; }).sleeping_in(WaitChannel::kPoll).process(7, 1, 0, 60, 0.02);
    builder.context(7, 0, 0, 60);
    std::vector<std::string> frames{"<module> (/u/train.py:9)"};
    if (loop) frames.emplace_back("BaseEventLoop._run_once (/usr/lib/python3.11/asyncio/base_events.py:1890)");
    frames.emplace_back("EpollSelector.select (/usr/lib/python3.11/selectors.py:468)");
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.7, {"<module> (/u/train.py:9)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.7, i + 1, frames);
    }
    return explain(builder.build()).findings.front();
  };
  const Finding waits = first(true);
  EXPECT_THAT(waits.title, HasSubstr("while every coroutine of the training process waits (asyncio)"));
  EXPECT_THAT(waits.evidence, Contains(HasSubstr("what its coroutines wait for is on no stack")));
  EXPECT_THAT(waits.advice, HasSubstr("asyncio.create_task"));
  EXPECT_THAT(first(false).title, Not(HasSubstr("coroutine")));
}

// Code in a library that uses no GPU launches nothing.
TEST(StackFindings, CodeThatUsesNoGpuIsNotLaunchBound) {
  const auto first = [](const std::string& called) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.7; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.5, i + 1, {"train (/u/train.py:1)", "rows (/u/train.py:9)", called});
    }
    return explain(builder.build()).findings.front();
  };
  const Finding plain = first("db.execute() (/u/train.py:9)");
  EXPECT_THAT(plain.candidates, AllOf(Not(Contains(Cause::kLaunchBound)), Contains(Cause::kSyncPoints)))
      << "after each wait for its kernels such code runs beside none";
  EXPECT_THAT(plain.told_apart_from, Contains(HasSubstr("in calls that use no GPU")));
  EXPECT_THAT(first("x.mul_() (/u/train.py:9)").candidates, Contains(Cause::kLaunchBound));
}

// Metrics load nothing; in a package that uses no GPU they launch nothing, either.
TEST(StackFindings, MetricsInEachStepAreHostCode) {
  const auto first = [](const std::string& called) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.7; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i)
      builder.stacks(7, i, i + 1, {"train (/u/train.py:1)", "score (/u/train.py:9)", called});
    return explain(builder.build()).findings.front();
  };
  const Finding metrics = first("f1_score (/usr/lib/python3/dist-packages/sklearn/metrics/_ranking.py:1)");
  EXPECT_EQ(metrics.cause, Cause::kHostGraphBuilding);
  EXPECT_EQ(metrics.title, "The GPU waits for metrics in the training process: score (train.py)");
  EXPECT_THAT(first("pairs (/u/mine.py:1)").candidates, Contains(Cause::kInputInMainProcess));
}

// A list that is searched, a history that is written anew: each step takes longer than the one before.
TEST(StackFindings, CodeThatTakesMoreAndMoreOfTheTimeIsSaidTo) {
  const auto evidence = [](double grows) {
    RecordingBuilder builder(60);
    const auto idle = [=](double t) { return 0.2 + grows * t / 60; };
    builder.gpu(0, [=](double t) { return 1 - idle(t); }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 1 - idle(i), {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 1 - idle(i), i + 1, {"train (/u/train.py:1)", "is_new (/u/train.py:9)"});
    }
    return explain(builder.build()).findings.front().evidence;
  };
  EXPECT_THAT(
      evidence(0.6),
      Contains(HasSubstr(
          "it takes more and more: 30 % of the first third of the time from the first kernel to the last, 50 % ")));
  for (const double steady : {0.0, -0.15}) EXPECT_THAT(evidence(steady), Not(Contains(HasSubstr("more and more"))));
}

// A cache that is filled: later steps hardly wait.
TEST(StackFindings, CodeThatTakesItsTimeAtTheBeginningIsSaidTo) {
  RecordingBuilder builder(60);
  const auto idle = [](double t) { return t < 20 ? 0.6 : 0.01; };
  builder.gpu(0, [=](double t) { return 1 - idle(t - 0.001); }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 1 - idle(i), {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 1 - idle(i), i + 1, {"train (/u/train.py:1)", "fill (/u/train.py:9)"});
  }
  EXPECT_THAT(explain(builder.build()).findings.front().evidence,
              Contains(HasSubstr("it takes less and less: 58 % of the first third")));
}

// What another account has less of was told from it in another way.
TEST(StackFindings, CodeTakesNoMoreThanBeforeWhereTheGpuIsIdleForAsLong) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 1).process(8, 7, 0, 60, 0.5).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    const double code = 0.1 + 0.3 * i / 60;
    builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.5, i + 0.5 + code, {"train (/u/train.py:1)", "is_new (/u/train.py:9)"});
    builder.stacks(7, i + 0.5 + code, i + 1,
                   {"train (/u/train.py:1)", "_next_data (/x/site-packages/torch/utils/data/dataloader.py:1)"});
  }
  const Explanation e = explain(builder.build());
  const Finding* code = find(e, Cause::kHostGraphBuilding);
  ASSERT_NE(code, nullptr) << e.headline;
  EXPECT_GT(code->cost(), 10 * kSecond);
  EXPECT_THAT(code->evidence, Not(Contains(HasSubstr("more and more"))));
}

TEST(StackFindings, NamedPhasesAreSaidWhereTheTimeLiesInThem) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 15 ? 0.9 : 0.0; })
      .process(7, 1, 0, 60, 0.95)
      .context(7, 0, 0, 60);
  std::vector<std::pair<double, std::string>> phases;
  for (int i = 0; i < 3; ++i) phases.insert(phases.end(), {{i * 20, "train"}, {i * 20 + 15, "score"}});
  const Explanation e = explain(builder.marks(7, "marks", phases, {{0.0, 0}, {60.0, 300}}).build());
  EXPECT_THAT(e.findings.front().evidence.front(), HasSubstr("of it in the phase score"));
  EXPECT_THAT(e.findings.front().evidence.front(), Not(HasSubstr("too short")));
  EXPECT_THAT(e.headline, HasSubstr("5 steps per second"));
  ASSERT_EQ(e.phases.size(), 2U);
  EXPECT_EQ(e.phases[0].named_by, "marks");
  for (const LedgerEntry& entry : e.ledger.entries) {
    ASSERT_GE(entry.phase, 0);
    ASSERT_LT(entry.phase, 2);
  }
}

TEST(StackFindings, AnOnlyPhaseThatIsAllOfTheTrainingTellsNothing) {
  const auto evidence = [](double epoch_ends) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double t) { return t < 6 || std::fmod(t, 5) < 2 ? 0.0 : 0.9; })
        .process(7, 1, 0, 60, 0.95)
        .context(7, 0, 0, 60);
    const std::vector<std::pair<double, std::string>> phases{{6, "epoch"}, {epoch_ends, ""}};
    const Explanation e = explain(builder.marks(7, "marks", phases, {}).build());
    return join(e.findings.front().evidence, "; ");
  };
  EXPECT_THAT(evidence(60), Not(HasSubstr("in the phase")));
  EXPECT_THAT(evidence(40), HasSubstr("of it in the phase epoch"));
}

TEST(StackFindings, PhasesThatAreTooShortForTheReadingsAreNamedBesideTheOneAroundThem) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 0.95).context(7, 0, 0, 60);
  std::vector<std::pair<double, std::string>> phases;
  for (int i = 0; i < 300; ++i) phases.insert(phases.end(), {{i * 0.2, "train/load"}, {i * 0.2 + 0.1, "train"}});
  const Explanation e = explain(builder.marks(7, "marks", phases, {}).build());
  EXPECT_THAT(e.findings.front().evidence.front(),
              HasSubstr("100 % of it in the phase train (train/load in it took 30.0 s, each too short"));
}

TEST(StackFindings, SharesOfAHandfulOfStacksAreNotSaid) {
  RecordingBuilder builder(6);
  builder.gpu(0, [](double t) { return t > 2 && t <= 2.6 ? 0.0 : 0.99; }).process(7, 1, 0, 6, 0.95).context(7, 0, 0, 6);
  builder.stacks(7, 0, 6, {"train (/u/train.py:1)", "log (/u/train.py:7)"});
  for (const Finding& finding : explain(builder.build()).findings)
    for (const std::string& line : finding.evidence) {
      if (line.find("Python stacks") == std::string::npos || finding.cost() >= kSecond) continue;
      EXPECT_THAT(line, AllOf(HasSubstr("a few only"), Not(HasSubstr("%"))));
    }
}

TEST(StackFindings, AHelperOfSomebodyElseIsNoLoaderOfWhoSleepsInItsOwnCode) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
  builder.process(20, 7, 0, 60, 0.3);  // TensorBoard, say
  builder.stacks(7, 0, 60, {"train (/u/train.py:1)", "throttle (/u/train.py:9)"});
  const Explanation e = explain(builder.build());
  EXPECT_EQ(e.ledger.total(Account::kInput), 0);
  EXPECT_THAT(e.findings.front().title, HasSubstr("sleeps or waits itself: throttle"));
}

TEST(StackFindings, FollowTheFamilyThatSomebodysOwnRuleNames) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 0.3).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.5, i + 1, {"train (/u/train.py:1)", "tell_home (/u/train.py:9)"});
  }
  const Recording recording = builder.build();
  const Finding before = explain(recording).findings.front();
  EXPECT_NE(before.cause, Cause::kLoggingUpload);
  ExplainOptions options;
  options.families = {{stacks::Family::kLogging, "", "tell_home"}};
  const Finding after = explain(recording, options).findings.front();
  EXPECT_EQ(after.cause, Cause::kLoggingUpload);
  EXPECT_EQ(after.title, "The GPU waits for logging or upload in the training process: tell_home (train.py)");
  EXPECT_NE(after.advice, before.advice);
}

}  // namespace
}  // namespace headroom
