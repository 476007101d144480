// SPDX-License-Identifier: Apache-2.0
#include "analyze/study_match.h"
#include "cli/output.h"
#include "cli/study.h"
#include "tune/study_facts.h"

namespace headroom::cli {

namespace {

// The trials' times by Unix time, if the storage's are `offset` before it.
StudyMatch match_at(const Recording& recording, const Study& study, const tune::StudyOptions& told, Nanos offset) {
  std::vector<TrialTime> trials;
  for (const Trial& trial : study.trials)
    if (trial.start && (trial.complete || trial.state == TrialState::kRunning))
      trials.push_back({.number = trial.number,
                        .begin = *trial.start + offset,
                        .end = trial.complete ? *trial.complete + offset : told.now,
                        .finished = trial.complete.has_value(),
                        .failed = trial.state == TrialState::kFail});
  return match_study(recording, std::move(trials));
}

void add(const StudyMatch& match, const OpenedRecording& opened, tune::StudyOptions& told) {
  told.recording = StudyRecording{.path = opened.path,
                                  .covered = match.covered,
                                  .gpu_busy = match.gpu_busy,
                                  .memory_per_trial_bytes = match.memory_per_trial_bytes,
                                  .memory_at_once_bytes = match.memory_at_once_bytes,
                                  .trials_matched = static_cast<std::int64_t>(match.trials.size())};
  for (const TrialUse& use : match.trials) {
    told.recording->shared |= use.shared;
    tune::TrialMeasured& measured = told.measured[use.number];
    if (use.startup) measured.startup_seconds = seconds(*use.startup);
    measured.gpu = use.gpu;
    measured.computed = use.computed;
    measured.memory_bytes = use.memory_bytes;
    measured.alive = !use.gone;
  }
  for (const OutOfMemoryTrial& trial : match.out_of_memory)
    told.measured[trial.number].out_of_memory = trial.said ? tune::OutOfMemory::kSaid : tune::OutOfMemory::kFull;
}

}  // namespace

StudyReport facts_with(const OpenedRecording* opened, const Study& study, tune::StudyOptions& told) {
  StudyReport facts = tune::study_facts(study, told);
  if (opened == nullptr) return facts;
  StudyMatch match = match_at(opened->recording, study, told, facts.clock.offset);
  bool by_recording = false;
  if (!facts.clock.known && told.local_offset != 0) {  // UTC or local time: where its trials are in the recording
    StudyMatch local = match_at(opened->recording, study, told, -told.local_offset);
    by_recording = local.trials.empty() != match.trials.empty();
    if (by_recording) told.utc_offset = local.trials.empty() ? 0 : told.local_offset;
    if (match.trials.empty()) match = std::move(local);
  } else if (!facts.clock.known && !match.trials.empty()) {
    by_recording = true;
    told.utc_offset = 0;
  }
  if (match.trials.empty())
    say(fmt::format("{}: no trial of study {} was found among its processes", opened->path, study.name),
        match.covered > 0 ? "it must be of the job that runs the trials, with its GPU"
                          : "its time is another; --tz says of which zone the study's times are");
  add(match, *opened, told);
  facts = tune::study_facts(study, told);
  if (by_recording) facts.clock.how = "only so its trials lie in the recording";
  return facts;
}

}  // namespace headroom::cli
