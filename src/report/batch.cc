// SPDX-License-Identifier: Apache-2.0
#include "report/batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/batch_table.h"
#include "report/json_values.h"
#include "report/ledger_json.h"
#include "report/requirements.h"
#include "report/text.h"

namespace headroom::report {

namespace {

std::string tasks_words(std::int64_t count) { return count_of(count, "task"); }

std::string first_sentence(const BatchSummary& summary, const BatchEndFacts& facts) {
  const auto& tasks = summary.tasks;
  std::string text =
      fmt::format("{} in {}: {} succeeded", tasks_words(tasks.total),
                  human_duration(static_cast<Nanos>(summary.wall_seconds * 1e9)), human_count(tasks.succeeded));
  if (facts.earlier > 0)
    text += fmt::format(" ({} in earlier runs)", human_count(static_cast<std::int64_t>(facts.earlier)));
  const auto add = [&](std::int64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", human_count(count), what);
  };
  add(tasks.failed, "failed");
  add(tasks.skipped, "skipped");
  add(tasks.cancelled, "cancelled");
  add(tasks.left, "left to run");
  return text + (tasks.failed > 0 ? " (headroom batch show --failed)." : ".");
}

// What the rate of one per GPU was measured on; attempts are counted per model, which GPUs share.
struct MeasuredAlone {
  std::int64_t attempts = 0;
  bool history = false;
};
MeasuredAlone measured_alone(const BatchSummary& summary) {
  MeasuredAlone alone;
  for (const auto& packing : summary.packing) {
    alone.attempts = std::max(alone.attempts, packing.one_per_gpu_attempts);
    alone.history = alone.history || packing.one_per_gpu_from_history;
  }
  return alone;
}

std::string measured_on(const BatchSummary& summary) {
  const auto [attempts, history] = measured_alone(summary);
  if (attempts == 0) return "measured in earlier batches";
  return fmt::format("measured on {} that ran alone{}", tasks_words(attempts),
                     history ? " and in earlier batches" : "");
}

// The work of these GPUs over that of one task per GPU on them, and the most that it can be.
struct PackingGain {
  double value = 0, low = 0, high = 0, most = 0;
  std::string why_not_more;
};
PackingGain packing_gain(const BatchSummary& summary, double concurrency) {
  double work = 0, alone = 0, error = 0, busy = 0;
  for (const auto& packing : summary.packing) {
    if (!packing.work_per_second || !packing.one_per_gpu_work_per_second) continue;
    work += *packing.work_per_second;
    alone += *packing.one_per_gpu_work_per_second;
    error = std::max(error, packing.one_per_gpu_error_ratio);
    busy = std::max(busy, packing.alone_busy_ratio.value_or(0));
  }
  PackingGain gain{.most = concurrency, .why_not_more = "as many at once do no more than as many times its work"};
  if (alone <= 0) return gain;
  if (busy > 0 && 1 / busy < gain.most)
    gain.most = 1 / busy, gain.why_not_more = fmt::format("alone, its kernels run {} of the time", human_percent(busy));
  gain.value = work / alone;
  gain.low = gain.value / (1 + error);
  gain.high = std::min(gain.value * (1 + error), std::max(gain.low, gain.most));
  return gain;
}

// One sentence where all GPUs worked; only claims what was measured on both sides.
std::string packing_sentence(const BatchSummary& summary) {
  double concurrency = 0;
  for (const auto& packing : summary.packing)
    concurrency += packing.concurrency / static_cast<double>(summary.packing.size());
  constexpr double kPacked = 1.2;
  if (concurrency < kPacked) return "";
  const std::string many = fmt::format("Packing {:.1f} tasks per GPU", concurrency);
  constexpr std::string_view kWouldTell = "The same batch once with --no-pack --fresh would tell.";
  const PackingGain gain = packing_gain(summary, concurrency);
  if (gain.value <= 0)
    return fmt::format("{}; what that gained was not measured: {}. {}", many,
                       summary.packing.front().one_per_gpu_unknown, kWouldTell);
  // Stopped before anything that shared a GPU was done: those that were alone would be compared with themselves.
  if (const MeasuredAlone on = measured_alone(summary); !on.history && on.attempts >= summary.tasks.succeeded)
    return fmt::format("{}; what that gained was not measured: no task that shared a GPU has succeeded.", many);
  // A failed task takes a place and counts as no work: less of it is no fault of the packing.
  if (gain.value < 1 && summary.tasks.failed > 0)
    return fmt::format("{}; what that gained cannot be told, because {} failed.", many,
                       tasks_words(summary.tasks.failed));
  if (gain.low > gain.most)
    return fmt::format(
        "{}; what that gained cannot be told: against the tasks that ran alone it would be {} or more, and more than "
        "{} is not possible ({}). {}",
        many, human_factor(gain.low), human_factor(gain.most), gain.why_not_more, kWouldTell);
  const std::string failed =
      summary.tasks.failed > 0 ? fmt::format(", without the {} that failed", human_count(summary.tasks.failed)) : "";
  return fmt::format("{} did {} to {} the work of one per GPU ({}{}).", many, human_factor(gain.low),
                     human_factor(gain.high), measured_on(summary), failed);
}

std::string placement_sentence(const BatchSummary& summary, const BatchEndFacts& facts) {
  const std::int64_t all = summary.verified + summary.unseen + static_cast<std::int64_t>(summary.misplaced.size());
  if (all == 0) return "";
  if (!facts.placement_readable) return "Where they ran could not be checked.";
  if (summary.unseen == all) return "The driver listed none of them: too short for that, or not on a GPU.";
  std::string text = fmt::format("The driver saw {} on the GPU {} given", count_of(summary.verified, "attempt"),
                                 summary.verified == 1 ? "it was" : "they were");
  if (!summary.misplaced.empty()) text += fmt::format(", {} on another one", summary.misplaced.size());
  if (summary.unseen > 0)
    text += fmt::format("; {} it did not list: too short for that, or not on a GPU", human_count(summary.unseen));
  return text + ".";
}

std::string names(const std::vector<std::string>& all) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> shown(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kShown)));
  std::string text = join(shown, ", ");
  if (all.size() > kShown) text += fmt::format(" and {} more", all.size() - kShown);
  return text;
}

Json device_json(const BatchSummary::DeviceUse& device) {
  return {{"uuid", device.uuid},
          {"index", device.index},
          {"tasks", device.tasks},
          {"busy_ratio", optional_json(device.busy_ratio)},
          {"quarantined", device.quarantined}};
}

Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

Json attempt_json(const NamedAttempt& named) {
  const Attempt& a = named.attempt;
  Json metrics = Json::object();
  for (const auto& [name, value] : a.metrics) metrics[name] = value;
  return {{"task", named.task},
          {"parameters", pairs_json(named.parameters)},
          {"attempt", a.id},
          {"number", a.number},
          {"outcome", a.outcome ? Json(info(*a.outcome).name) : Json(nullptr)},
          {"reason", a.reason},
          {"exit_code", optional_json(a.exit_code)},
          {"start_ns", a.start},
          {"end_ns", optional_json(a.end)},
          {"gpu_uuids", a.gpu_uuids},
          {"seen_gpu_uuids", a.seen_gpu_uuids},
          {"proof", name(a.proof)},
          {"slot", a.slot},
          {"pid", a.pid},
          {"argv", a.argv},
          {"environment", pairs_json(a.environment)},
          {"parameters_resolved", pairs_json(a.parameters_resolved)},
          {"metrics", metrics},
          {"working_directory", a.working_directory},
          {"git_commit", a.git_commit},
          {"git_dirty", optional_json(a.git_dirty)},
          {"input_hashes", pairs_json(a.input_hashes)},
          {"driver_version", a.driver_version},
          {"log_path", a.log_path},
          {"reserved_gpu_bytes", optional_json(a.reserved_gpu_bytes)},
          {"peak_gpu_bytes", optional_json(a.peak_gpu_bytes)},
          {"peak_host_bytes", optional_json(a.peak_host_bytes)},
          {"cpu_time_ns", optional_json(a.cpu_time)},
          {"gpu_time_ns", optional_json(a.gpu_time)},
          {"steps", optional_json(a.steps)}};
}

std::vector<std::string> sentences(const BatchSummary& summary, const BatchEndFacts& facts) {
  std::vector<std::string> all{first_sentence(summary, facts)};
  if (const auto text = packing_sentence(summary); !text.empty()) all.push_back(text);
  if (const auto text = placement_sentence(summary, facts); !text.empty()) all.push_back(text);
  if (!facts.cpu_fallbacks.empty())
    all.push_back(fmt::format("Never used the GPU they were given: {}.", names(facts.cpu_fallbacks)));
  if (summary.oom_requeues > 0)
    all.push_back(fmt::format("{} ran out of memory and ran again with more room.",
                              summary.oom_requeues == 1 ? "One attempt" : count_of(summary.oom_requeues, "attempt")));
  if (!summary.rerun_after_crash.empty())
    all.push_back(fmt::format("Run again because their end had not been written when Headroom died: {}.",
                              names(summary.rerun_after_crash)));
  return all;
}

}  // namespace

std::string to_text(const BatchSummary& summary, const BatchEndFacts& facts,
                    const std::optional<Explanation>& explanation, const TextOptions& options) {
  const TextOptions layout = clamped(options);
  std::string text = wrap(join(sentences(summary, facts), " "), layout.width, "", "") +
                     requirements_text(summary.requirements, layout);
  if (explanation && explanation->ledger.budget() > 0) {
    const std::size_t limit = line_limit(explanation->ledger.devices.size(), layout);
    const auto taken = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 2;
    text += "\n" + shared_part(*explanation, layout, limit - taken);
  }
  if (!facts.resume.empty()) text += fmt::format("Go on with: {}\n", visible(facts.resume));
  return text;
}

std::string to_text(const BatchSummary& summary, const BatchEndFacts& facts, const TextOptions& options) {
  return to_text(summary, facts, std::nullopt, options);
}

std::string to_json(const BatchSummary& summary, const BatchEndFacts& facts,
                    const std::optional<Explanation>& explanation) {
  const auto& tasks = summary.tasks;
  Json devices = Json::array(), misplaced = Json::array(), packing = Json::array();
  for (const auto& device : summary.devices) devices.push_back(device_json(device));
  for (const auto& one : summary.misplaced)
    misplaced.push_back({{"task", one.task}, {"wanted", one.wanted}, {"found", one.found}});
  for (const auto& one : summary.packing)
    packing.push_back({{"device", one.device},
                       {"concurrency", one.concurrency},
                       {"work_per_second", optional_json(one.work_per_second)},
                       {"one_per_gpu_work_per_second", optional_json(one.one_per_gpu_work_per_second)},
                       {"one_per_gpu_error_ratio", one.one_per_gpu_error_ratio},
                       {"alone_busy_ratio", optional_json(one.alone_busy_ratio)},
                       {"one_per_gpu_attempts", one.one_per_gpu_attempts},
                       {"one_per_gpu_from_history", one.one_per_gpu_from_history},
                       {"one_per_gpu_unknown", text_json(std::string(one.one_per_gpu_unknown))},
                       {"unit", one.unit}});
  const auto seconds_of = [&](const auto& of) { return explanation ? Json(seconds(of(*explanation))) : nullptr; };
  const auto account = [&](Account id) {
    return seconds_of([id](const Explanation& e) { return e.ledger.total(id); });
  };
  Json root{{"schema", "headroom.batch/1"},
            {"tasks",
             {{"total", tasks.total},
              {"succeeded", tasks.succeeded},
              {"failed", tasks.failed},
              {"skipped", tasks.skipped},
              {"cancelled", tasks.cancelled},
              {"left", tasks.left},
              {"succeeded_earlier", facts.earlier}}},
            {"attempts", summary.attempts},
            {"retries", summary.retries},
            {"oom_requeues", summary.oom_requeues},
            {"wall_seconds", summary.wall_seconds},
            {"devices", devices},
            {"placement",
             {{"verified", summary.verified},
              {"unseen", summary.unseen},
              {"misplaced", misplaced},
              {"cpu_fallback", facts.cpu_fallbacks}}},
            {"packing", packing},
            {"rerun_after_crash", summary.rerun_after_crash},
            {"ledger", explanation ? ledger_json(*explanation) : Json(nullptr)},
            {"tail_seconds", seconds_of([](const Explanation& e) { return e.batch ? e.batch->tail : 0; })},
            {"discarded_device_seconds", account(Account::kDiscarded)},
            {"task_waiting_device_seconds", account(Account::kTaskWaiting)},
            {"recording", text_json(summary.recording)},
            {"journal", summary.journal},
            {"longest_call_seconds", seconds(summary.longest_call)}};
  if (!summary.requirements.empty()) root["requirements"] = requirements_json(summary.requirements);
  return dump(root, 1);
}

namespace {
std::string placement_words(const Attempt& attempt) {
  std::string words(name(attempt.proof));
  if (attempt.proof == PlacementProof::kUnseen && attempt.end)
    words +=
        fmt::format(": no look at the driver's lists found it in its {}", human_duration(*attempt.end - attempt.start));
  return words;
}

std::string reported_words(const Attempt& attempt) {
  std::vector<std::string> words;
  for (const auto& [name, value] : attempt.metrics) words.push_back(fmt::format("{}={}", name, value));
  for (const auto& [name, value] : attempt.parameters_resolved) words.push_back(fmt::format("{}={}", name, value));
  return join(words, " ");
}
}  // namespace

std::string to_text(const NamedAttempt& named, const TextOptions& options) {
  const Attempt& a = named.attempt;
  const TextOptions layout = clamped(options);
  std::string text;
  const auto row = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) text += wrap(value, layout.width, "  " + pad_right(label, 14), std::string(16, ' '));
  };
  const std::string_view outcome = a.outcome ? info(*a.outcome).label : "running";
  text += bold(fmt::format("{}  attempt {}: {}\n", visible(named.task), a.number, outcome), layout);
  row("why", a.reason);
  if (a.exit_code) row("exit code", fmt::format("{}", *a.exit_code));
  std::vector<std::string> given;
  for (const auto& [name, value] : named.parameters)
    given.push_back(fmt::format("{}={}", parameter_label(name), value));
  row("parameters", join(given, " "));
  row("command", typed_line(a.argv));
  std::vector<std::string> environment;
  for (const auto& [name, value] : a.environment) environment.push_back(fmt::format("{}={}", name, typed_word(value)));
  row("environment", join(environment, " "));
  row("folder", a.working_directory);
  row("GPUs", join(a.gpu_uuids, " "));
  const bool ran = a.outcome != AttemptOutcome::kNotStarted;
  if (!a.gpu_uuids.empty() && ran) row("placement", placement_words(a));
  if (a.proof == PlacementProof::kMisplaced) row("seen on", join(a.seen_gpu_uuids, " "));
  row("started", clock_time(a.start) + " UTC");
  if (a.end && ran) row("took", human_duration(*a.end - a.start));
  if (a.steps) row("steps", fmt::format("at least {}", *a.steps));  // by what it said last
  if (a.cpu_time) row("CPU time", human_duration(*a.cpu_time));
  if (a.gpu_time) row("GPU time", "at least " + human_duration(*a.gpu_time));  // what came between looks is not in it
  if (a.peak_gpu_bytes) row("GPU memory", human_bytes(*a.peak_gpu_bytes));
  if (a.peak_host_bytes) row("host memory", human_bytes(*a.peak_host_bytes));
  row("reported", reported_words(a));
  if (!a.git_commit.empty()) row("git", a.git_commit + (a.git_dirty.value_or(false) ? " with changes" : ""));
  for (const auto& [path, hash] : a.input_hashes) row("input", fmt::format("{} {}", path, hash));
  row("driver", a.driver_version);
  row("log", a.log_path);
  return text;
}

std::string to_json(const std::vector<NamedAttempt>& attempts) {
  Json list = Json::array();
  for (const auto& attempt : attempts) list.push_back(attempt_json(attempt));
  return dump({{"schema", "headroom.batch-show/1"}, {"attempts", list}}, 1);
}

}  // namespace headroom::report
