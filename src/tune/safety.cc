// SPDX-License-Identifier: Apache-2.0
#include "tune/safety.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/human.h"

namespace headroom::tune {

namespace {

struct Verdict {
  Safety safety = Safety::kSafe;
  std::string why;
};

Verdict of_memory(const Change& change, const Circumstances& circumstances, const StudyOptions& options) {
  const std::optional<std::int64_t> memory = memory_of(change, options);
  const std::int64_t n = change.settings.workers;
  if (!memory || !options.gpu_memory_bytes) {
    if (n <= circumstances.base_workers) return {};
    return {Safety::kModerate,
            memory ? fmt::format("the GPU's memory is not known, of which {} would be in use", human_bytes(*memory))
                   : "memory per trial is not known: measure one with headroom run"};
  }
  const std::string sum =
      fmt::format("memory: {} x {} of {}", n, human_bytes(*memory / n), human_bytes(*options.gpu_memory_bytes));
  if (*memory > *options.gpu_memory_bytes) return {Safety::kRisky, sum + ": does not fit"};
  if (*memory + kReserveBytes > *options.gpu_memory_bytes) {
    return {Safety::kRisky, sum + fmt::format(": less than {} are left", human_bytes(kReserveBytes))};
  }
  return n > circumstances.base_workers ? Verdict{Safety::kSafe, sum} : Verdict{};
}

Verdict of_cores(const Change& change, const StudyOptions& options) {
  const std::optional<double> wanted = cores_of(change, options);
  if (!wanted || !options.cores) return {};
  const std::int64_t loaders = change.settings.workers * change.loader_workers;
  if (static_cast<double>(loaders) > *options.cores) {
    return {Safety::kRisky, fmt::format("cores: {} x {} = {} loader workers oversubscribe {:g} cores",
                                        change.settings.workers, change.loader_workers, loaders, *options.cores)};
  }
  if (*wanted <= *options.cores) return {};
  return {Safety::kModerate, fmt::format("cores: {} trials and {} loader workers may want more than {:g} cores",
                                         change.settings.workers, loaders, *options.cores)};
}

Verdict of_pruner(const Circumstances& circumstances) {
  if (!circumstances.pruner_changed) return {};
  return {Safety::kModerate,
          circumstances.mid_study
              ? "in mid-study: rungs under the old settings stay and mix with the new, and processes that run do not "
                "reload the pruner; better in the next study"
              : "for a new study: in this one, rungs under the old settings would mix with the new"};
}

Verdict of_warmth(const Change& change) {
  if (!change.warm) return {};
  return {Safety::kModerate, "a trial must leave nothing behind: random seeds, GPU memory, hooks"};
}

}  // namespace

void judge(Change& change, const Circumstances& circumstances, const StudyOptions& options) {
  std::vector<std::string> whys;
  for (const Verdict& verdict : {of_memory(change, circumstances, options), of_cores(change, options),
                                 of_pruner(circumstances), of_warmth(change)}) {
    change.safety = std::max(change.safety, verdict.safety);
    if (!verdict.why.empty()) whys.push_back(verdict.why);
  }
  change.why = fmt::format("{}", fmt::join(whys, "; "));
  const std::optional<std::int64_t> memory = memory_of(change, options);
  change.fits = !memory || !options.gpu_memory_bytes || *memory <= *options.gpu_memory_bytes ||
                change.settings.workers <= circumstances.base_workers;  // as many did fit
}

std::optional<std::int64_t> memory_per_trial(const StudyOptions& options) {
  if (options.memory_per_trial_bytes) return options.memory_per_trial_bytes;
  return options.recording ? options.recording->memory_per_trial_bytes : std::nullopt;
}

std::optional<std::int64_t> memory_of(const Change& change, const StudyOptions& options) {
  const std::optional<std::int64_t> each = memory_per_trial(options);
  return each ? std::optional(*each * change.settings.workers) : std::nullopt;
}

std::optional<double> cores_of(const Change& change, const StudyOptions& options) {
  if (!options.loader_workers) return std::nullopt;
  return static_cast<double>(change.settings.workers * (1 + change.loader_workers));
}

}  // namespace headroom::tune
