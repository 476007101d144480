// SPDX-License-Identifier: Apache-2.0
#include "diagnose/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/events.h"
#include "model/job_variables.h"
#include "model/notes.h"

namespace headroom {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::StartsWith;

Answer answer(const Explanation& e, std::string_view name) {
  for (const HealthCheck& check : e.health)
    if (check.check == name) {
      EXPECT_NE(check.evidence, "") << name;
      return check.good;
    }
  ADD_FAILURE() << "no check " << name;
  return Answer::kUnknown;
}

TEST(Health, AJobThatComputesToItsEndNeitherHangsNorRunsOutOfMemory) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 60, 0.5).context(100, 0, 0, 60, 0.9);
  recording.meta().exit_code = 0;
  const Explanation e = explain(recording.build());
  EXPECT_EQ(answer(e, "runs_on_gpu"), Answer::kYes);
  EXPECT_EQ(answer(e, "no_hang"), Answer::kYes);
  EXPECT_EQ(answer(e, "no_out_of_memory"), Answer::kYes);
  EXPECT_EQ(answer(e, "mixed_precision"), Answer::kUnknown) << "nothing says";
}

TEST(Health, OfAJobThatNeverComputesNoLastKernelIsToldNorItsClocks) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 60, 0.9);
  recording.meta().exit_code = 0;
  const Explanation e = explain(recording.build());
  EXPECT_EQ(check(e, "progress").evidence, "no kernel was seen, but CPU work");
  EXPECT_EQ(answer(e, "clocks"), Answer::kUnknown);
}

TEST(Health, WhoseTensorPipesCouldTellAndWereNotReadIsSaid) {
  const auto said = [](const std::string& capability) {
    RecordingBuilder builder(60);
    Recording recording = builder.gpu(0, [](double) { return 0.9; }).build();
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kGpu) {
        Device device = device_of(source);
        device.compute_capability = capability;
        source.attrs = to_attrs(device);
      }
    return check(explain(recording), "mixed_precision").evidence;
  };
  EXPECT_THAT(said("9.0"),
              EndsWith("; how busy their tensor pipes were, which GPUs from Hopper on tell, was not read"));
  EXPECT_THAT(said("10.3"), EndsWith("was not read"));
  for (const char* other : {"8.6", ""})
    EXPECT_THAT(said(other), EndsWith("; GPUs from Hopper on tell how busy their tensor pipes are"));
}

TEST(Health, OfAJobThatLivedBetweenTwoListsNoContextIsDenied) {
  const auto of = [](double length) {
    RecordingBuilder recording(length);
    recording.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, length, 0.5);
    const Explanation e = explain(recording.build());
    return check(e, "runs_on_gpu");
  };
  EXPECT_EQ(of(60).evidence, "it never held a compute context");
  EXPECT_EQ(of(0.4).good, Answer::kUnknown) << of(0.4).evidence;
  EXPECT_THAT(of(2).evidence, HasSubstr("not known whether it held a compute context: it lived 2.0 s"));
}

TEST(Health, WhatAFailedJobTookLastIsNotKnown) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 60, 0.5).context(100, 0, 0, 60, 0.9);
  recording.meta().exit_code = 0;
  EXPECT_EQ(answer(explain(recording.build()), "memory"), Answer::kYes);
  RecordingBuilder failing(60);
  failing.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 60, 0.5).context(100, 0, 0, 60, 0.9);
  failing.meta().exit_code = 1;
  EXPECT_EQ(answer(explain(failing.build()), "memory"), Answer::kUnknown);
}

TEST(Health, OfAJobThatFailedIsSaidWhetherItsOutputWasRead) {
  const auto ended = [](int code, std::vector<MissingTier> missing) {
    RecordingBuilder recording(10);
    recording.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 10, 0.5).context(100, 0, 0, 10, 0.9);
    recording.meta().exit_code = code;
    recording.meta().missing_tiers = std::move(missing);
    for (const HealthCheck& check : explain(recording.build()).health)
      if (check.check == "ended_well") return check.evidence;
    return std::string();
  };
  const MissingTier unread{'L', "not asked for (--output-lines)"};
  EXPECT_EQ(ended(1, {unread}), "exit code 1; its output was not read: not asked for (--output-lines)");
  EXPECT_EQ(ended(1, {}), "exit code 1");
  EXPECT_EQ(ended(1, {{'L', std::string(kOutputToldNothing)}}), "exit code 1") << "it was read, and told nothing";
  EXPECT_EQ(ended(137, {unread}), "ended by signal 9") << "what it printed does not tell who sent that";
  EXPECT_EQ(ended(0, {unread}), "exit code 0");
  // bash -c 'python3 train.py; exit $?' returns it, and is ended by nobody.
  RecordingBuilder returned(10);
  returned.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 10, 0.5).context(100, 0, 0, 10, 0.9);
  returned.meta().exit_code = 137;
  Recording recording = returned.build();
  recording.events.push_back(to_event(events::JobEnd{.exit_code = 137}, recording.meta.end));
  for (const HealthCheck& check : explain(recording).health)
    if (check.check == "ended_well") {
      EXPECT_EQ(check.evidence, "exit code 137, with which shells say that signal 9 ended what they ran");
    }
}

TEST(Headline, OfAJobThatFailedSaysSoFirst) {
  const auto headline = [](int code, std::optional<std::int64_t> returned, const std::string& note) {
    RecordingBuilder builder(10);
    builder.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 10, 0.5).context(100, 0, 0, 10, 0.9);
    builder.meta().exit_code = code;
    Recording recording = builder.build();
    if (returned) recording.events.push_back(to_event(events::JobEnd{.exit_code = returned}, recording.meta.end));
    if (!note.empty())
      recording.events.push_back(
          to_event(events::Note{.text = std::string(kNoteException) + note, .line = {}}, recording.meta.end));
    return explain(recording).headline;
  };
  EXPECT_EQ(headline(1, 1, "").find("The job failed after 10.0 s: exit code 1. "), 0U);
  EXPECT_EQ(headline(1, 1, "ValueError: NaN").find("The job failed after 10.0 s: exit code 1 (ValueError: NaN). "), 0U);
  EXPECT_EQ(headline(137, {}, "").find("Signal 9 ended the job after 10.0 s. "), 0U);
  EXPECT_EQ(headline(137, 137, "").find("The job failed after 10.0 s: exit code 137. "), 0U);
  EXPECT_EQ(headline(0, 0, "ValueError: caught").find("The job failed"), std::string::npos);
}

TEST(Headline, OfAJobThatFailedWhileItWasWatched) {
  const auto headline = [](std::optional<int> code, const std::string& note) {
    RecordingBuilder builder(10);
    builder.gpu(0, [](double) { return 0.9; })
        .process({.pid = 100, .ppid = 1, .from = 0, .to = 10, .cpu = 0.5, .exit_code = code})
        .context(100, 0, 0, 10, 0.9);
    builder.meta().origin = "record", builder.meta().job_pid = 100;
    builder.meta().exit_code.reset();
    Recording recording = builder.build();
    if (!note.empty())
      recording.events.push_back(
          to_event(events::Note{.text = std::string(kNoteException) + note, .line = {}}, recording.meta.end));
    return explain(recording).headline;
  };
  EXPECT_THAT(headline(1, "ValueError: NaN"),
              StartsWith("The job failed while it was watched: exit code 1 (ValueError: NaN). The GPU"));
  EXPECT_THAT(headline({}, "ValueError: NaN"),
              StartsWith("What the job wrote ended with an exception: ValueError: NaN. The GPU"));
  EXPECT_THAT(headline(0, "ValueError: caught"), StartsWith("The GPU"));
  EXPECT_THAT(headline({}, ""), StartsWith("The GPU"));
}

TEST(Headline, OfAJobThatFailedSaysInWhichEpoch) {
  RecordingBuilder builder(10);
  builder.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 10, 0.5).context(100, 0, 0, 10, 0.9);
  builder.meta().exit_code = 1;
  Recording recording = builder.build();
  recording.events.push_back(
      to_event(events::Progress{.unit = "epoch", .number = 5, .of = 8, .state = "within"}, recording.meta.start, 0));
  recording.events.push_back(to_event(events::JobEnd{.exit_code = 1}, recording.meta.end));
  EXPECT_EQ(explain(recording).headline.find("The job failed after 10.0 s, in epoch 5 of 8: exit code 1. "), 0U);
}

TEST(Health, WhatMovesNoMoreHangs) {
  RecordingBuilder recording(600);
  recording.gpu(0, [](double t) { return t < 200 ? 0.9 : 0.0; })
      .process(100, 1, 0, 600, 0)
      .context(100, 0, 0, 600, 0.9);
  const Explanation e = explain(recording.build());
  ASSERT_GT(e.ledger.total(Account::kHung), 0);
  EXPECT_EQ(answer(e, "no_hang"), Answer::kNo);
  EXPECT_EQ(answer(e, "no_out_of_memory"), Answer::kUnknown);
}

TEST(Health, KernelsRanUntilTheirLast) {
  const auto progress = [](double busy_until, double read_until) {
    RecordingBuilder recording(100);
    recording.gpu(0, [=](double t) { return t < busy_until ? 0.9 : 0.0; }).process(100, 1, 0, 100, 0.5);
    Recording made = recording.context(100, 0, 0, 100).build();
    for (const SourceId gpu : made.all(SourceKind::kGpu)) {
      Track& track = made.tracks[static_cast<std::size_t>(gpu)];
      for (Column& column : track.columns) {
        column.absent.resize(column.values.size());
        for (std::size_t row = 0; row < track.at.size(); ++row)
          if (track.at[row] > RecordingBuilder::at(read_until)) column.absent[row] = 1;
      }
    }
    for (const HealthCheck& check : explain(made).health)
      if (check.check == "progress") return check.evidence;
    return std::string();
  };
  EXPECT_EQ(progress(100, 100), "kernels ran to the end");
  EXPECT_EQ(progress(95.5, 100), "kernels ran until 5.0 s before the end");
  EXPECT_THAT(progress(60, 92), HasSubstr("of the time, as far as samples cover it"));
  EXPECT_THAT(progress(60, 100), Not(HasSubstr("samples cover")));
  EXPECT_EQ(progress(100, 92), "kernels ran late in it; its end is covered by no sample");
}

TEST(Health, AJobThatEndedByItselfAndWellDidNotHang) {
  const auto hangs = [](std::optional<int> code) {
    RecordingBuilder recording(100);
    recording.gpu(0, [](double t) { return t < 60 ? 0.9 : 0.0; }).process(100, 1, 0, 100, 0.01).context(100, 0, 0, 100);
    recording.meta().exit_code = code;
    return answer(explain(recording.build()), "no_hang");
  };
  EXPECT_NE(hangs(std::nullopt), Answer::kYes);
  EXPECT_NE(hangs(1), Answer::kYes) << "a watchdog may have ended it";
  EXPECT_EQ(hangs(0), Answer::kYes);
}

TEST(Health, AttemptsThatRanOutOfMemoryAreCounted) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double) { return 0.9; }).queue(0, 1);
  recording.task({"a", 100, {0}, 0, 20, 1, std::string(info(AttemptOutcome::kGpuOutOfMemory).name)});
  recording.task({"b", 101, {0}, 20, 60, 1});
  EXPECT_EQ(answer(explain(recording.build()), "no_out_of_memory"), Answer::kNo);
}

TEST(Health, MixedPrecisionIsWhatTheJobSaysWhereNoCounterDoes) {
  for (const auto& [value, expected] : {std::pair("bf16-mixed", Answer::kYes), std::pair("32-true", Answer::kNo),
                                        std::pair("float32", Answer::kNo), std::pair("auto", Answer::kUnknown)}) {
    RecordingBuilder recording(20);
    recording.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 20, 0.5).context(100, 0, 0, 20, 0.9);
    recording.sink().add_event(
        to_event(events::Parameter{.name = "precision", .value = value}, RecordingBuilder::at(2)));
    EXPECT_EQ(answer(explain(recording.build()), "mixed_precision"), expected) << value;
  }
}

TEST(Health, MixedPrecisionIsWhatTheCommandOrTheEnvironmentAsksFor) {
  const auto asked = [](std::vector<std::string> command, const JobVariables& variables = {}) {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 20, 0.5).context(100, 0, 0, 20, 0.9);
    Recording recording = builder.build();
    recording.meta.command = std::move(command);
    keep_job_variables(variables, recording.meta);
    return explain(recording);
  };
  EXPECT_EQ(answer(asked({"train.py", "--fp16"}), "mixed_precision"), Answer::kYes);
  EXPECT_EQ(answer(asked({"train.py", "--fp16", "--lr", "3"}), "mixed_precision"), Answer::kYes);
  EXPECT_EQ(answer(asked({"train.py", "--use-amp", "false"}), "mixed_precision"), Answer::kNo);
  EXPECT_EQ(answer(asked({"train.py", "--mixed_precision=no"}), "mixed_precision"), Answer::kNo);
  EXPECT_EQ(answer(asked({"train.py", "--no-amp", "--lr", "3"}), "mixed_precision"), Answer::kNo);
  EXPECT_EQ(answer(asked({"train.py", "--lr", "fp16"}), "mixed_precision"), Answer::kUnknown);
  EXPECT_EQ(check(asked({"train.py", "--precision", "bf16-mixed"}), "mixed_precision").evidence,
            "the command says --precision bf16-mixed");
  EXPECT_EQ(check(asked({"train.py"}, {{"ACCELERATE_MIXED_PRECISION", "bf16"}}), "mixed_precision").evidence,
            "ACCELERATE_MIXED_PRECISION=bf16 in its environment");
}

TEST(Health, TensorPipesDoNotTellMixedPrecisionFromTF32) {
  const auto active = [](double share, const char* precision, double busy = 0.9) {
    RecordingBuilder recording(20);
    recording.gpu(0, [=](double) { return busy; }).process(100, 1, 0, 20, 0.5).context(100, 0, 0, 20, 0.9);
    if (*precision != '\0')
      recording.sink().add_event(
          to_event(events::Parameter{.name = "precision", .value = precision}, RecordingBuilder::at(2)));
    return explain(with(recording.build(), SourceKind::kGpu, 0, Metric::kTensorActive, [=](double) { return share; }));
  };
  EXPECT_EQ(answer(active(0.3, ""), "mixed_precision"), Answer::kUnknown);
  EXPECT_THAT(check(active(0.3, ""), "mixed_precision").evidence,
              HasSubstr("by 16 bits or by TF32, which headroom.params(precision=...)"));
  EXPECT_EQ(answer(active(0.001, ""), "mixed_precision"), Answer::kNo);
  EXPECT_EQ(answer(active(0.3, "32-true"), "mixed_precision"), Answer::kNo);
  EXPECT_EQ(
      check(active(0.3, "bf16"), "mixed_precision").evidence,
      "the job says precision=bf16; in the readings that tell, tensor pipes active 30 % of the time, kernels 90 %");
  EXPECT_EQ(answer(active(0.001, "", 0.01), "mixed_precision"), Answer::kUnknown) << "a tenth of the kernels' time";
}

TEST(Health, StacksTellMixedPrecision) {
  const auto with_frame = [](const std::string& frame) {
    RecordingBuilder recording(20);
    recording.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 20, 0.5).context(100, 0, 0, 20, 0.9);
    return explain(recording.stacks(100, 0, 20, {"train (/u/train.py:1)", frame}).build());
  };
  const std::string amp = "/x/site-packages/torch/amp/";
  const Explanation scaled = with_frame("GradScaler._maybe_opt_step (" + amp + "grad_scaler.py:347)");
  EXPECT_EQ(answer(scaled, "mixed_precision"), Answer::kYes);
  EXPECT_EQ(check(scaled, "mixed_precision").evidence,
            "GradScaler._maybe_opt_step (grad_scaler.py) is on its Python stacks");
  const Explanation autocast = with_frame("decorate_autocast (" + amp + "autocast_mode.py:44)");
  EXPECT_EQ(answer(autocast, "mixed_precision"), Answer::kUnknown);
  EXPECT_THAT(check(autocast, "mixed_precision").evidence, HasSubstr("unless it was switched off"));
}

}  // namespace
}  // namespace headroom
