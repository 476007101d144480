// SPDX-License-Identifier: Apache-2.0
#include "diagnose/joined.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyze/analysis.h"
#include "analyze/ledger.h"
#include "diagnose/headline.h"
#include "diagnose/joined_findings.h"
#include "diagnose/joined_ranks.h"
#include "diagnose/joined_words.h"
#include "diagnose/rules.h"
#include "model/losses.h"

namespace headroom {

namespace diagnose {

namespace {

class Joiner {
 public:
  Joiner(std::vector<ExplainedPart> parts, const ExplainOptions& options)
      : parts_(std::move(parts)), options_(options) {
    for (const ExplainedPart& part : parts_) metas_.push_back(part.meta);
    names_ = part_names(metas_);
    one_machine_ = of_one_machine(names_);
  }

  Explanation join() {
    all_.path = options_.path;
    all_.meta = meta_of_all(metas_);
    for (const ExplainedPart& part : parts_)
      if (goes_on(part.meta)) all_.meta.stop_reason.clear();
    place_devices();
    set_span();
    for (std::size_t i = 0; i < parts_.size(); ++i) take_time(i);
    fill_gaps();
    sum_up();
    for (std::size_t i = 0; i < parts_.size(); ++i) take_facts(i);
    join_health();
    take_findings();
    all_.about_parts = about_parts(all_, parts_, names_);
    const auto runs = [](const ExplainedPart& part) { return goes_on(part.meta); };
    put_headline(joined_sentence(all_, parts_, options_.limits), std::any_of(parts_.begin(), parts_.end(), runs), all_);
    return std::move(all_);
  }

 private:
  // A GPU of a machine is one, whichever parts have it. In order of machines, then of indices.
  void place_devices() {
    using Key = std::tuple<std::string, int, std::string>;
    std::map<Key, std::pair<Device, bool>> known;
    std::vector<std::vector<Key>> keys(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (Device device : parts_[i].explanation.ledger.devices) {
        keys[i].emplace_back(names_[i].machine, device.index, device.uuid);
        device.host = one_machine_ ? "" : names_[i].machine;
        known.try_emplace(keys[i].back(), std::move(device), false);
      }
    std::map<Key, std::size_t> place;
    for (auto& [key, device] : known) {
      place[key] = devices_.size();
      devices_.push_back({kNoSource, std::move(device.first), true, false, {}});
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      PlaceOfPart of{names_[i].part, names_[i].machine, to_unix_time(metas_[i]), {}, {}};
      for (const Key& key : keys[i]) of.devices.push_back(place[key]);
      places_.push_back(std::move(of));
    }
    stalls_.resize(devices_.size());
    idle_peers_.assign(devices_.size(), true);
  }

  void set_span() {
    bool first = true;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Ledger& ledger = parts_[i].explanation.ledger;
      const Nanos begin = ledger.begin + places_[i].shift, end = ledger.end + places_[i].shift;
      time_.begin = first ? begin : std::min(time_.begin, begin);
      time_.end = first ? end : std::max(time_.end, end);
      first = false;
    }
    if (!options_.window) return;
    time_.begin = all_.meta.start + options_.window->first;
    time_.end = std::min(all_.meta.end, all_.meta.start + options_.window->second);
  }

  // The slices and stalls of a part's devices, by the names that the joined ledger has.
  void take_time(std::size_t i) {
    Explanation& e = parts_[i].explanation;
    PlaceOfPart& place = places_[i];
    const auto tasks = static_cast<std::int32_t>(all_.ledger.tasks.size());
    const auto phases = static_cast<std::int32_t>(all_.phases.size());
    for (std::size_t at = 0; at < e.ledger.places.size(); ++at) place.places.push_back(place_index(e.ledger, at));
    for (const std::string& task : e.ledger.tasks) all_.ledger.tasks.push_back(fmt::format("{}: {}", place.name, task));
    for (std::size_t device = 0; device < e.slices.size(); ++device) {
      const std::size_t to = place.devices[device];
      std::vector<Slice>& all = devices_[to].slices;
      all.reserve(all.size() + e.slices[device].size());
      for (Slice slice : e.slices[device]) {
        slice.begin += place.shift, slice.end += place.shift;
        if (slice.phase >= 0) slice.phase += phases;
        if (slice.task >= 0) slice.task += tasks;
        if (slice.where >= 0) slice.where = place.places[static_cast<std::size_t>(slice.where)];
        all.push_back(slice);
      }
      e.slices[device] = {};
      for (Stall stall : parts_[i].stalls[device]) {
        stall.time.begin += place.shift, stall.time.end += place.shift;
        stalls_[to].push_back(stall);
      }
      if (!parts_[i].idle_peers[device]) idle_peers_[to] = false;
    }
    for (Phase& phase : e.phases) {
      phase.device = place.devices[phase.device];
      all_.phases.push_back(std::move(phase));
    }
    time_.batch = time_.batch || metas_[i].origin == "batch";
  }

  // One place is one, however many machines ran it, if most of its time was at the same lines.
  std::int32_t place_index(const Ledger& ledger, std::size_t at) {
    const auto line = [&](const std::vector<CodeLine>& lines) { return at < lines.size() ? lines[at] : CodeLine{}; };
    const CodeLine of = line(ledger.lines), startup = line(ledger.lines_of_startup), sync = line(ledger.lines_of_sync),
                   input = line(ledger.lines_of_input);
    const std::string key = fmt::format("{}\n{}:{}\n{}:{}\n{}:{}\n{}:{}", ledger.places[at], of.file, of.line,
                                        startup.file, startup.line, sync.file, sync.line, input.file, input.line);
    const auto [entry, is_new] = index_.try_emplace(key, static_cast<std::int32_t>(all_.ledger.places.size()));
    if (is_new) {
      all_.ledger.places.push_back(ledger.places[at]);
      all_.ledger.lines.push_back(of);
      all_.ledger.lines_of_startup.push_back(startup);
      all_.ledger.lines_of_sync.push_back(sync);
      all_.ledger.lines_of_input.push_back(input);
    }
    return entry->second;
  }

  // Of what no part has, no reading tells.
  void fill_gaps() {
    for (DeviceTime& time : devices_) {
      std::stable_sort(time.slices.begin(), time.slices.end(),
                       [](const Slice& x, const Slice& y) { return x.begin < y.begin; });
      std::vector<Slice> filled;
      filled.reserve(time.slices.size() + parts_.size() + 1);
      Nanos until = time_.begin;
      const auto fill = [&](Nanos to) {
        if (to > until) filled.push_back({until, to, Account::kUnobserved, 0, "N", Confidence::kHigh});
      };
      for (Slice& slice : time.slices) {
        slice.begin = std::max(slice.begin, until);
        if (slice.begin >= slice.end) continue;
        fill(slice.begin);
        until = slice.end;
        filled.push_back(slice);
      }
      fill(time_.end);
      time.slices = std::move(filled);
    }
  }

  void sum_up() {
    Ledger summed = ledger(devices_, time_.begin, time_.end);
    summed.tasks = std::move(all_.ledger.tasks);
    summed.places = std::move(all_.ledger.places);
    summed.lines = std::move(all_.ledger.lines);
    summed.lines_of_startup = std::move(all_.ledger.lines_of_startup);
    summed.lines_of_sync = std::move(all_.ledger.lines_of_sync);
    summed.lines_of_input = std::move(all_.ledger.lines_of_input);
    all_.ledger = std::move(summed);
    time_.kernels.assign(devices_.size(), 0);
    for (const LedgerEntry& entry : all_.ledger.entries)
      if (entry.account == Account::kUseful) time_.kernels[entry.device] += entry.ns;
  }

  void take_facts(std::size_t i) {
    Explanation& e = parts_[i].explanation;
    const PlaceOfPart& place = places_[i];
    ExplainedRecording of{place.name,
                          parts_[i].path,
                          metas_[i].host,
                          e.ledger.begin + place.shift,
                          e.ledger.end + place.shift,
                          place.devices.size(),
                          metas_[i].stop_reason,
                          metas_[i].exit_code};
    all_.parts.push_back(std::move(of));
    for (DeviceStats& stats : e.devices) {
      stats.device = place.devices[stats.device];
      for (MetricStats& metric : stats.metrics)
        for (ExcludedReading& reading : metric.excluded) reading.at += place.shift;
      all_.devices.push_back(std::move(stats));
    }
    for (Loss& loss : e.losses) {
      loss.detail = loss.detail.empty() ? place.name : place.name + ": " + loss.detail;
      loss.places.clear();  // of another clock
      count_loss(all_.losses, loss);
    }
    all_.too_few = (i == 0 || all_.too_few) && e.too_few;
    take_work(e);
    take_cost(e.cost);
  }

  void take_work(Explanation& e) {
    if (e.work) {
      const std::int64_t processes = e.work->processes + (all_.work ? all_.work->processes : 0);
      if (!all_.work || e.work->steps > all_.work->steps) all_.work = e.work;
      all_.work->processes = processes;
    }
    if (e.said.metrics.empty()) return;
    if (saying_++ == 0)
      all_.said = std::move(e.said);
    else
      all_.said = {};  // each says its own
  }

  void take_cost(const RecordingCost& cost) {
    const auto add = [](auto& sum, const auto& one) {
      if (one) sum = sum.value_or(0) + *one;
    };
    add(all_.cost.cpu_seconds, cost.cpu_seconds);
    add(all_.cost.file_bytes, cost.file_bytes);
    if (cost.core_ratio) all_.cost.core_ratio = std::max(all_.cost.core_ratio.value_or(0), *cost.core_ratio);
    if (cost.max_rss_bytes)
      all_.cost.max_rss_bytes = std::max(all_.cost.max_rss_bytes.value_or(0), *cost.max_rss_bytes);
  }

  // No, where it is so anywhere; yes, where it is so everywhere.
  void join_health() {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (const HealthCheck& check : parts_[i].explanation.health) {
        const auto known = std::find_if(all_.health.begin(), all_.health.end(),
                                        [&](const HealthCheck& other) { return other.check == check.check; });
        if (known == all_.health.end()) all_.health.push_back(joined_check(check.check));
      }
  }

  [[nodiscard]] HealthCheck joined_check(const std::string& name) const {
    HealthCheck joined{name, Answer::kUnknown, ""};
    std::map<Answer, std::vector<std::size_t>> answers;
    const auto of = [&](std::size_t i) {
      const auto& health = parts_[i].explanation.health;
      return std::find_if(health.begin(), health.end(), [&](const HealthCheck& one) { return one.check == name; });
    };
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const bool asked = of(i) != parts_[i].explanation.health.end();
      answers[asked ? of(i)->good : Answer::kUnknown].push_back(i);
    }
    joined.good = answers.contains(Answer::kNo)                   ? Answer::kNo
                  : answers[Answer::kYes].size() == parts_.size() ? Answer::kYes
                                                                  : Answer::kUnknown;
    for (const std::size_t i : answers[joined.good]) {
      if (of(i) == parts_[i].explanation.health.end()) continue;
      joined.evidence = fmt::format("{}: {}", places_[i].name, of(i)->evidence);
      break;
    }
    if (const std::size_t more = answers[joined.good].size(); more > 1 && joined.good != Answer::kUnknown)
      joined.evidence += fmt::format(", and likewise {} more", more - 1);
    return joined;
  }

  void take_findings() {
    std::vector<std::vector<Finding>> findings;
    const bool one_job = are_one_job(parts_) && !time_.batch;
    for (ExplainedPart& part : parts_) findings.push_back(std::move(part.explanation.findings));
    all_.findings = join_findings(std::move(findings), places_, time_);
    if (one_job && !one_machine_)
      for (Finding& finding : beside_each_other()) {
        // Where each part is well no finding is part of another.
        std::erase_if(all_.findings, [](const Finding& other) { return other.cause == Cause::kHealthy; });
        add_finding(std::move(finding), all_.findings);
      }
    set_bound();
    for (std::size_t device = 0; device < devices_.size(); ++device)
      all_.slices.push_back(std::move(devices_[device].slices));
  }

  // What only shows where all machines of a job are seen: a rank, or a GPU, for which others on other machines wait.
  std::vector<Finding> beside_each_other() {
    Analysis a;
    a.meta = all_.meta;
    a.window = {time_.begin, time_.end};
    a.limits = options_.limits;
    a.ledger = all_.ledger;
    a.job.has_host = std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part.has_host; });
    std::vector<Recording> steps;
    std::vector<std::string> machines;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      steps.push_back(std::move(parts_[i].steps));
      machines.push_back(names_[i].machine);
    }
    a.ranks = paces_of_all(std::move(steps), machines, a.window, a.limits);
    std::vector<Finding> found = slow_rank(a);
    a.waits_in_kernels = waits_in_kernels(stalls_, devices_, idle_peers_, a.limits);
    if (!shows_beside_others(a.waits_in_kernels, devices_, idle_peers_, a.limits)) return found;
    a.devices = std::move(devices_);
    for (std::size_t device = 0; device < a.devices.size(); ++device) {
      a.gpus.emplace_back();
      a.gpus.back().idle_peer = idle_peers_[device];
    }
    for (Finding& finding : late_gpus(a)) found.push_back(std::move(finding));
    devices_ = std::move(a.devices);
    return found;
  }

  // At equal work: no GPU is done earlier than its kernels take, but for those that are known to do nothing.
  void set_bound() {
    std::vector<Nanos> kernels = time_.kernels;
    for (const Finding& finding : all_.findings)
      for (const ClaimedPiece& piece : finding.claims)
        if (piece.account == Account::kUseful && !finding.part_of) kernels[piece.device] -= piece.end - piece.begin;
    const Nanos longest = kernels.empty() ? 0 : *std::max_element(kernels.begin(), kernels.end());
    if (longest <= 0 || time_.batch || all_.too_few) return;
    all_.bound =
        Bound{std::max(1.0, static_cast<double>(time_.end - time_.begin) / static_cast<double>(longest)),
              "if the GPU work itself stays as it is and where it is, all else could be removed, with all that "
              "no reading covers, and nothing else becomes the limit"};
  }

  std::vector<ExplainedPart> parts_;
  const ExplainOptions& options_;
  std::vector<RecordingMeta> metas_;
  std::vector<PartName> names_;
  bool one_machine_ = false;
  std::vector<PlaceOfPart> places_;
  std::vector<DeviceTime> devices_;
  std::vector<std::vector<Stall>> stalls_;
  std::vector<bool> idle_peers_;
  std::map<std::string, std::int32_t> index_;  // of places
  JoinedTime time_;
  std::size_t saying_ = 0;  // parts that say metrics
  Explanation all_;
};

}  // namespace

}  // namespace diagnose

ExplainedPart explain_part(const Recording& part, const ExplainOptions& options) {
  ExplainedPart explained{part.meta, options.path, {}, {}, {}, false, diagnose::steps_in(part)};
  explained.explanation = explain(part, options, [&](const Analysis& a) {
    for (const GpuAnalysis& gpu : a.gpus) {
      explained.stalls.push_back(gpu.stalls);
      explained.idle_peers.push_back(gpu.idle_peer);
    }
    explained.has_host = a.job.has_host;
  });
  // Hundreds of these wait for one another: what was room to grow is given back.
  for (auto& slices : explained.explanation.slices) slices.shrink_to_fit();
  for (Finding& finding : explained.explanation.findings) {
    finding.claims.shrink_to_fit();
    finding.counted.shrink_to_fit();
  }
  return explained;
}

Explanation join_parts(std::vector<ExplainedPart> parts, const ExplainOptions& options) {
  return diagnose::Joiner(std::move(parts), options).join();
}

Explanation explain_parts(const Recording& recording, const ExplainOptions& options) {
  const std::vector<RecordingMeta> metas = metas_of_parts(recording);
  std::vector<ExplainedPart> parts;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    ExplainOptions own = options;
    own.path.clear();
    own.file_bytes.reset();
    if (options.window) {  // from its own begin on
      const Nanos later = metas[i].start_realtime - recording.meta.start, span = metas[i].end - metas[i].start;
      own.window = {std::clamp<Nanos>(options.window->first - later, 0, span),
                    std::clamp<Nanos>(options.window->second - later, 0, span)};
    }
    parts.push_back(explain_part(part_of(recording, i), own));
  }
  Explanation all = join_parts(std::move(parts), options);
  all.cost.file_bytes = options.file_bytes;
  return all;
}

}  // namespace headroom
