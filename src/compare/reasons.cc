// SPDX-License-Identifier: Apache-2.0
#include "compare/reasons.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/human.h"
#include "base/strings.h"

namespace headroom::compare {

namespace {

// Whether there are enough runs, or steps of one run each, to tell a difference from noise.
constexpr std::string_view kCountsSteps = "headroom.step(), or --step REGEX for lines of output,";

struct Enough {
  bool yes = true;
  std::string why_not;  // with figures and what would do; "": another reason says it all
};

bool one_each(const Matching& m) { return m.a.size() == 1 && m.b.size() == 1; }

double steps_of(const Side& side) {
  double sum = 0;
  for (const Stretch& stretch : side.steps) sum += stretch.steps;
  return sum;
}

Enough enough_steps(const Facts& f) {
  const std::size_t stretches = std::min(f.a_rates.size(), f.b_rates.size());
  const double fewest = std::min(steps_of(f.a), steps_of(f.b));
  if (fewest >= kFewestSteps && stretches >= kFewestStretches) return {};
  if (f.unit == Unit::kNone) return {false, ""};  // that nothing counts them says it
  const std::string timed = fmt::format("{} in {}", count_of(static_cast<std::int64_t>(fewest), "step"),
                                        count_of(stretches, "stretch", "stretches"));
  const std::string least = fmt::format("{:g} in {} are the least", kFewestSteps, kFewestStretches);
  if (f.whole)
    return {false, fmt::format("A ran once, B once; {} runs of each are the least, since {} on the shorter side do not "
                               "tell how sure one is ({})",
                               kFewestRuns, timed, least)};
  return {false, fmt::format("{} were timed on the shorter side; {}{}", timed, least,
                             one_each(f.matching) ? fmt::format(", or {} runs of each", kFewestRuns)
                                                  : "; without --steps whole runs are compared")};
}

Enough enough_runs(const Facts& f) {
  if (f.together) return {};
  const Matching& m = f.matching;
  const std::size_t runs = m.pairs.empty() ? std::min(m.a_repeats, m.b_repeats) : m.pairs.size();
  if (m.common == 0 || runs >= kFewestRuns) return {};
  const auto times = [](std::size_t count) { return count == 1 ? "once" : count_of(count, "time"); };
  const bool steps_would_do = f.steps_would_do && f.unit == Unit::kNone && one_each(m);
  return {
      false,
      fmt::format("A ran {}, B {}; {} runs of each are the least{}", times(m.a.size()), times(m.b.size()), kFewestRuns,
                  steps_would_do ? fmt::format(", or one of each that counts its steps ({} does)", kCountsSteps) : "")};
}

Enough enough_of(const Facts& facts) { return facts.by_steps ? enough_steps(facts) : enough_runs(facts); }

constexpr double kSameConcurrency = 0.15;  // likewise: the ends of two batches differ a little
constexpr double kWorked = 0.9;            // of the time of a batch: else it was stopped in between
constexpr double kOthersCount = 0.01;      // of the GPUs' time
constexpr double kReadMore = 2, kReadCounts = 64 * 1048576.0;

class Reasons {
 public:
  void refuse(CompareReason reason, std::string text) { list_.push_back({reason, std::move(text), true}); }
  void note(CompareReason reason, std::string text) { list_.push_back({reason, std::move(text), false}); }
  std::vector<ComparedReason> sorted() {
    std::stable_sort(list_.begin(), list_.end(), [](const ComparedReason& x, const ComparedReason& y) {
      return std::pair(!x.refuses, x.reason) < std::pair(!y.refuses, y.reason);
    });
    return std::move(list_);
  }

 private:
  std::vector<ComparedReason> list_;
};

std::string time_words(double seconds) { return human_duration(static_cast<Nanos>(seconds * 1e9)); }

std::string work_words(double work, Unit unit) {
  const std::string_view noun = unit == Unit::kSteps || unit == Unit::kUneven ? "step" : "sample";
  return count_of(static_cast<std::int64_t>(std::llround(work)), noun);
}

double total_work(const std::vector<const Sample*>& runs, Unit unit) {
  double sum = 0;
  for (const Sample* run : runs) sum += work_of(*run, unit).value_or(0);
  return sum;
}

double total_seconds(const std::vector<const Sample*>& runs) {
  double sum = 0;
  for (const Sample* run : runs) sum += run->seconds();
  return sum;
}

bool differ(double x, double y, double tolerance) { return std::abs(x - y) > tolerance * std::max(x, y); }

void look_at_tasks(const Facts& f, Reasons& reasons) {
  const Matching& m = f.matching;
  if (f.a.samples.empty() || f.b.samples.empty()) {
    reasons.refuse(CompareReason::kDifferentTasks, fmt::format("{} holds no run", f.a.samples.empty() ? "A" : "B"));
  } else if (m.common == 1 && m.a.front()->task.empty()) {
    reasons.refuse(CompareReason::kDifferentTasks, "neither says which program ran");
  } else if (m.a_tasks == 1 && m.b_tasks == 1 && m.common == 0) {
    reasons.refuse(CompareReason::kDifferentTasks,
                   fmt::format("A ran {}, B {}",
                               f.a.samples.front().task.empty() ? "an unknown program" : f.a.samples.front().task,
                               f.b.samples.front().task.empty() ? "an unknown program" : f.b.samples.front().task));
  } else if (m.common < m.a_tasks || m.common < m.b_tasks) {
    const auto count = [](std::size_t n) { return human_count(static_cast<std::int64_t>(n)); };
    reasons.refuse(CompareReason::kDifferentTasks, fmt::format("{} of A's {} are among B's {}", count(m.common),
                                                               count_of(m.a_tasks, "task"), count(m.b_tasks)));
  }
}

// A side that did more in less time is no result, but a sign that the two did different things.
void look_at_speed(const Facts& f, double work_a, double work_b, Reasons& reasons) {
  const double time_a = total_seconds(f.matching.a), time_b = total_seconds(f.matching.b);
  const bool b_did_more = work_b > work_a;
  if (b_did_more ? time_b >= time_a : time_a >= time_b) return;
  const auto [more, less] = b_did_more ? std::pair("B", "A") : std::pair("A", "B");
  const double factor = b_did_more ? work_b / work_a : work_a / work_b;
  reasons.refuse(
      CompareReason::kFasterWithMoreWork,
      fmt::format("{} did {} of {}'s work in {} of its time: look at what it really did", more, human_factor(factor),
                  less, human_percent(b_did_more ? time_b / time_a : time_a / time_b)));
}

// Whole runs that differ by a whole factor are as likely to have held as much more in a step.
void look_at_step_counts(const Facts& f, Reasons& reasons) {
  if (f.unit != Unit::kSteps || batch_size_of(*f.matching.a.front())) return;
  const double a = total_work(f.matching.a, f.unit), b = total_work(f.matching.b, f.unit);
  const double factor = std::max(a, b) / std::min(a, b), whole = std::round(factor);
  if (whole < 2 || differ(factor, whole, kSameWork)) return;
  reasons.note(
      CompareReason::kDifferentWork,
      fmt::format("A did {}, B {}: the steps of {} may hold {:g} times the samples, and then this is no ratio of "
                  "equal work (headroom.step(samples=N) would tell)",
                  work_words(a, f.unit), work_words(b, f.unit), a < b ? "A" : "B", whole));
}

void look_at_work(const Facts& f, Reasons& reasons) {
  const Matching& m = f.matching;
  if (m.common == 0) return;
  if (f.unit == Unit::kUneven) {
    const auto a = batch_size_of(*m.a.front()), b = batch_size_of(*m.b.front());
    const std::string steps =
        a.has_value() != b.has_value()
            ? fmt::format("only {} names a batch size ({:g}): their steps may hold different numbers of samples",
                          a ? "A" : "B", a.value_or(b.value_or(0)))
            : "their steps hold different numbers of samples";
    reasons.refuse(CompareReason::kDifferentWork,
                   steps + ", and neither counts samples (headroom.step(samples=N) does)");
    return;
  }
  if (f.unit == Unit::kNone) {
    const auto counted = [](const std::vector<const Sample*>& runs) {
      return std::any_of(runs.begin(), runs.end(), [](const Sample* run) { return run->steps || run->seen; });
    };
    const bool a = counted(m.a), b = counted(m.b);
    if (a != b)
      reasons.refuse(CompareReason::kWorkUnknown, fmt::format("only {} counts its steps; {} would in {}", a ? "A" : "B",
                                                              kCountsSteps, a ? "B" : "A"));
    else if (f.by_steps)
      reasons.refuse(CompareReason::kWorkUnknown, fmt::format("neither counts steps; {} would", kCountsSteps));
    else
      reasons.note(CompareReason::kWorkUnknown,
                   "nothing counts steps: that the same runs did equal work is taken from their having succeeded");
    return;
  }
  if (f.by_steps && !f.whole) {  // the time per step is the same question, however many there were
    look_at_step_counts(f, reasons);
    return;
  }
  std::size_t uneven = 0;
  for (const auto& [a, b] : m.pairs)
    uneven += differ(work_of(*a, f.unit).value_or(0), work_of(*b, f.unit).value_or(0), kSameWork) ? 1U : 0U;
  const double work_a = total_work(m.a, f.unit) / static_cast<double>(m.a.size()),
               work_b = total_work(m.b, f.unit) / static_cast<double>(m.b.size());
  const bool different = differ(work_a, work_b, kSameWork);
  if (!different && uneven == 0) return;
  const std::string each = m.a.size() > 1 || m.b.size() > 1 ? " a run" : "";
  reasons.refuse(CompareReason::kDifferentWork,
                 different
                     ? fmt::format("A did {}{}, B {}{}", work_words(work_a, f.unit), each, work_words(work_b, f.unit),
                                   f.by_steps ? "; by the time of a step (--steps) that is no reason" : "")
                     : fmt::format("{} of {} differ in the number of steps",
                                   human_count(static_cast<std::int64_t>(uneven)), count_of(m.pairs.size(), "pair")));
  if (different)
    look_at_speed(f, work_a * static_cast<double>(m.a.size()), work_b * static_cast<double>(m.b.size()), reasons);
}

void look_at_concurrency(const Facts& f, Reasons& reasons) {
  const Matching& m = f.matching;
  if (m.common == 0) return;
  const auto timed = [](const std::vector<const Sample*>& runs) {
    return std::all_of(runs.begin(), runs.end(), [](const Sample* run) { return run->seconds() > 0; });
  };
  if (!timed(m.a) || !timed(m.b)) {
    reasons.refuse(CompareReason::kConcurrencyDiffersOrUnknown,
                   fmt::format("{} does not say when its runs began and ended", timed(m.a) ? "B" : "A"));
    return;
  }
  const Concurrency a = concurrency_of(m.a, f.a), b = concurrency_of(m.b, f.b);
  const std::string at_once = fmt::format("{:.1f} of A's tasks ran at once on average, {:.1f} of B's", a.mean, b.mean);
  if (f.together) {
    reasons.note(CompareReason::kConcurrencyDiffersOrUnknown, at_once);
    for (const auto& [name, of] : {std::pair("A", a), std::pair("B", b)})
      if (of.covered < kWorked * of.span)
        reasons.refuse(CompareReason::kInterleavedWithOtherWork,
                       fmt::format("in {} of the {} from {}'s first start to its last end none of its tasks ran",
                                   time_words(of.span - of.covered), time_words(of.span), name));
  } else if (differ(a.mean, b.mean, kSameConcurrency)) {
    reasons.refuse(CompareReason::kConcurrencyDiffersOrUnknown,
                   m.common > 1 && m.a_repeats == 1 && m.b_repeats == 1
                       ? at_once + "; --whole compares the time of all of them together"
                       : at_once);
  }
  const auto interleaved = [&](std::string_view name, const std::vector<const Sample*>& runs,
                               const Concurrency& among) {
    if (among.others == 0) return;
    reasons.refuse(CompareReason::kInterleavedWithOtherWork,
                   fmt::format("{}'s {} ran among {} others: the {} from the first to the last are not theirs alone",
                               name, human_count(static_cast<std::int64_t>(runs.size())),
                               human_count(static_cast<std::int64_t>(among.others)), time_words(among.span)));
  };
  interleaved("A", m.a, a), interleaved("B", m.b, b);
  if (m.a.size() == 1 && m.b.size() == 1 && m.a[0]->begin == m.b[0]->begin && m.a[0]->end == m.b[0]->end)
    reasons.refuse(CompareReason::kTooFewRepeats, "A and B are one and the same run: name two");
  else if (at_the_same_time(m.a, m.b))
    reasons.refuse(CompareReason::kInterleavedWithOtherWork, "runs of A and of B were under way at the same time");
}

std::string gpus_words(std::vector<std::string> gpus) {
  std::sort(gpus.begin(), gpus.end());
  std::map<std::string, int> count;
  for (const std::string& gpu : gpus) ++count[gpu];
  std::vector<std::string> words;
  for (const auto& [gpu, n] : count) words.push_back(fmt::format("{} x {}", n, gpu));
  return join(words, ", ");
}

void look_at_hardware(const Facts& f, Reasons& reasons) {
  const Hardware &a = f.a.hardware, &b = f.b.hardware;
  const auto sorted = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  const bool same_uuids = sorted(a.uuids) == sorted(b.uuids);
  if (a.gpus.empty() != b.gpus.empty() && !same_uuids)
    reasons.refuse(CompareReason::kDifferentHardware,
                   fmt::format("{} does not say which GPUs it had", a.gpus.empty() ? "A" : "B"));
  else if (!a.gpus.empty() && !b.gpus.empty() && sorted(a.gpus) != sorted(b.gpus)) {
    const bool more_of_them = std::set(a.gpus.begin(), a.gpus.end()) == std::set(b.gpus.begin(), b.gpus.end());
    const std::string had = fmt::format("A had {}, B {}", gpus_words(a.gpus), gpus_words(b.gpus));
    if (f.together && more_of_them)
      reasons.note(CompareReason::kDifferentHardware, had);
    else
      reasons.refuse(CompareReason::kDifferentHardware, had);
  } else if (!same_uuids)
    reasons.note(CompareReason::kDifferentHardware,
                 "they ran on different GPUs of one model, which need not be equally fast");
  if (!a.driver.empty() && !b.driver.empty() && a.driver != b.driver)
    reasons.refuse(CompareReason::kDifferentHardware,
                   fmt::format("A ran with driver {}, B with {}", a.driver, b.driver));
  if (a.cores && b.cores && *a.cores != *b.cores)
    reasons.refuse(CompareReason::kDifferentHardware,
                   fmt::format("A might use {:g} cores, B {:g}", *a.cores, *b.cores));
}

void look_at_outcomes(const Facts& f, Reasons& reasons) {
  std::vector<std::string> words;
  for (const auto& [name, runs] : {std::pair("A", &f.matching.a), std::pair("B", &f.matching.b)}) {
    std::map<std::string, std::int64_t> outcomes;
    for (const Sample* run : *runs)
      if (run->outcome != "succeeded") ++outcomes[run->outcome];
    for (const auto& [outcome, count] : outcomes) {
      std::string label = outcome;
      std::replace(label.begin(), label.end(), '_', ' ');
      words.push_back(fmt::format("{} of {}'s {}: {}", human_count(count), name, count_of(runs->size(), "run"), label));
    }
  }
  if (!words.empty()) reasons.refuse(CompareReason::kOutcomesDiffer, join(words, "; "));
}

void look_at_parameters(const Facts& f, Reasons& reasons) {
  std::vector<std::string> unintended;
  for (const ComparedParameter& parameter : f.parameters) {
    if (parameter.intended) continue;
    const auto value = [](const std::string& text) { return text.empty() ? "not set" : text; };
    unintended.push_back(fmt::format("{} ({} and {})", parameter.name, value(parameter.a), value(parameter.b)));
  }
  constexpr std::size_t kShown = 4;
  if (!unintended.empty()) {
    const std::size_t more = unintended.size() > kShown ? unintended.size() - kShown : 0;
    unintended.resize(unintended.size() - more);
    reasons.refuse(CompareReason::kParametersDifferUnintended,
                   fmt::format("nobody said that these should differ (--changed of compare and ab does): {}{}",
                               join(unintended, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  if (f.matching.common == 0) return;
  std::vector<std::string> who;
  std::size_t whole = 0;  // sides of which no run did
  for (const auto& [name, runs] : {std::pair("A", &f.matching.a), std::pair("B", &f.matching.b)}) {
    const auto missing =
        std::count_if(runs->begin(), runs->end(), [](const Sample* run) { return run->resolved.empty(); });
    const auto all = std::ssize(*runs);
    if (missing == all) ++whole;
    if (missing > 0) who.push_back(missing == all ? name : fmt::format("{} of {}'s {} runs", missing, name, all));
  }
  if (whole == 2)
    reasons.note(CompareReason::kParametersUnknown, "neither recorded the parameters that it settled on");
  else if (!who.empty())
    reasons.note(CompareReason::kParametersUnknown,
                 fmt::format("{} did not record the parameters that {} settled on", join(who, " and "),
                             whole == 1 && who.size() == 1 ? "it" : "they"));
}

// What only A had is no objection where B was meant to be without it.
void look_at_tenants_and_clocks(const Facts& f, Reasons& reasons) {
  const auto mended = [&](CompareReason reason) {
    return std::find(f.mended.begin(), f.mended.end(), reason) != f.mended.end();
  };
  for (const auto& [name, side] : {std::pair("A", &f.a), std::pair("B", &f.b)}) {
    if (side->others.value_or(0) <= kOthersCount) continue;
    const std::string text =
        fmt::format("kernels of others ran for {} of {}'s time", human_percent(*side->others), name);
    if (side == &f.a && mended(CompareReason::kOtherTenants))
      reasons.note(CompareReason::kOtherTenants, text + ", which the change was meant to end");
    else
      reasons.refuse(CompareReason::kOtherTenants, text);
  }
  if (!f.a.throttled.empty() && !f.b.throttled.empty())
    reasons.note(CompareReason::kThrottled, fmt::format("in both: {}", f.a.throttled));
  else if (!f.b.throttled.empty())
    reasons.refuse(CompareReason::kThrottled, fmt::format("in B, not in A: {}", f.b.throttled));
  else if (!f.a.throttled.empty() && mended(CompareReason::kThrottled))
    reasons.note(CompareReason::kThrottled,
                 fmt::format("in A, which the change was meant to end, not in B: {}", f.a.throttled));
  else if (!f.a.throttled.empty())
    reasons.refuse(CompareReason::kThrottled, fmt::format("in A, not in B: {}", f.a.throttled));
}

void look_at_caches(const Facts& f, Reasons& reasons) {
  if (f.matching.interleaved) return;  // each found what the other left
  const auto read_a = f.a.bytes_read, read_b = f.b.bytes_read;
  if (read_a && read_b) {
    const auto [less, more] = std::minmax(*read_a, *read_b);
    if (more > kReadCounts && more > kReadMore * less)
      reasons.note(CompareReason::kCacheStateUnknown,
                   fmt::format("A fetched {} from storage, B {}: one may have found its data in the page cache",
                               human_bytes(static_cast<std::int64_t>(*read_a)),
                               human_bytes(static_cast<std::int64_t>(*read_b))));
  } else {
    reasons.note(CompareReason::kCacheStateUnknown,
                 "how much either fetched from storage is not recorded: the second "
                 "may have found its data in the page cache");
  }
}

void look_at_repeats(const Facts& f, Reasons& reasons) {
  const Matching& m = f.matching;
  if (const Enough enough = enough_of(f); !enough.yes) {
    if (!enough.why_not.empty()) reasons.refuse(CompareReason::kTooFewRepeats, enough.why_not);
    return;
  }
  if (m.common == 0) return;
  if (f.together)
    reasons.note(
        CompareReason::kTooFewRepeats,
        fmt::format("each batch ran once: how much two equal ones differ is not known, and {} is taken for granted",
                    human_percent(kBatchToBatch)));
  else if (std::min(m.a_repeats, m.b_repeats) == 1)
    reasons.note(CompareReason::kTooFewRepeats,
                 fmt::format("each ran once: how much two equal runs differ is not known, and {} is taken for granted",
                             human_percent(kRunToRun)));
  if (!m.interleaved)
    reasons.note(CompareReason::kNotInterleaved, "one ran after the other: what else changed meanwhile counts, too");
}

}  // namespace

std::vector<ComparedReason> reasons_of(const Facts& facts) {
  Reasons reasons;
  look_at_tasks(facts, reasons);
  look_at_work(facts, reasons);
  look_at_concurrency(facts, reasons);
  look_at_hardware(facts, reasons);
  look_at_outcomes(facts, reasons);
  look_at_parameters(facts, reasons);
  look_at_tenants_and_clocks(facts, reasons);
  look_at_caches(facts, reasons);
  look_at_repeats(facts, reasons);
  return reasons.sorted();
}

}  // namespace headroom::compare
