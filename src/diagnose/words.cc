// SPDX-License-Identifier: Apache-2.0
#include "diagnose/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "base/human.h"
#include "base/median.h"
#include "diagnose/claims.h"
#include "diagnose/log_ends.h"
#include "model/memory_room.h"
#include "model/observations.h"
#include "model/parts.h"

namespace headroom::diagnose {

std::string larger_batch_words(double used, double total) {
  constexpr double kMost = 100;  // a factor of no use
  const double factor = larger_batch_fits(used, total);
  return fmt::format(
      "a larger batch fits ({} times, if all of it grows with it; {} kept for fragments)",
      factor > kMost ? fmt::format("more than {:.0f}", kMost) : fmt::format("{:.1f}", std::floor(10 * factor) / 10),
      human_percent(kMemoryReserve));
}

std::string average_words(const HostSummary& s) {
  constexpr double kNearlyAll = 0.9;
  return s.of_readings >= kNearlyAll ? "" : "over whole readings, ";
}

std::string owner_sentence(const HostSummary& s) {
  const bool several = s.owners > 1;  // these are means over them
  const std::string used = human_percent(s.owner_cpu), waited = human_percent(s.owner_delay);
  std::string text =
      several
          ? fmt::format(
                "{}the main threads of {} processes on a GPU used {} of a core and waited {} of the time for a free "
                "one, "
                "on average over this time of their GPUs",
                average_words(s), s.owners, used, waited)
          : fmt::format(
                "{}the main thread of the process on the GPU used {} of a core and waited {} of the time for a free "
                "one",
                average_words(s), used, waited);
  if (s.owner_threads >= 0.005) {
    const std::string cores = human_figure(s.owner_threads, 2);
    text += fmt::format("; {} other threads used {} {}{}", several ? "their" : "its", cores,
                        cores == "1" ? "core" : "cores", several ? " each" : "");
  }
  if (s.owner_io)
    text += fmt::format("; {} blocked on storage for {}", several ? "they were" : "it was", human_percent(*s.owner_io));
  return text;
}

std::vector<std::string> starved_sentence(const Analysis& a, const HostSummary& s) {
  if (s.owners == 0 || s.owner_delay < a.limits[Threshold::kHelpersStarved]) return {};
  return {fmt::format("{}{} ready to run and had no core for {} of the time", average_words(s),
                      s.owners > 1 ? "their main threads were" : "its main thread was", human_percent(s.owner_delay))};
}

std::string helper_sentence(const HostSummary& s) {
  if (s.helpers == 0) return s.owners > 1 ? "none of them has worker processes" : "it has no worker processes";
  return fmt::format("{}what it started ({} at once) used {:.1f} cores together, waiting for a core {} of the time",
                     average_words(s), s.helpers == 1 ? "1 process" : fmt::format("{} processes", s.helpers),
                     s.helper_cpu, human_percent(s.helper_delay));
}

std::vector<std::string> storage_sentences(const HostSummary& s) {
  const auto rate = [](double bytes) { return human_bytes(static_cast<std::int64_t>(bytes)) + "/s"; };
  std::string text;
  if (s.owner_read || s.helper_read) text = "read " + rate(s.owner_read.value_or(0) + s.helper_read.value_or(0));
  if (s.owner_write) text += (text.empty() ? "written " : ", written ") + rate(*s.owner_write);
  if (text.empty()) return {};
  return {"storage, averaged over whole readings: " + text};
}

std::vector<std::string> cores_sentence(const HostSummary& s) {
  if (!s.busy_cores) return {};
  const double job = (s.owner_cpu + s.owner_threads) * static_cast<double>(s.owners) + s.helper_cpu;
  const double own = std::min(job, *s.busy_cores);
  if (s.machine_cores > s.usable_cores)
    return {
        fmt::format("of its {:.3g} cores the machine used {:.1f}; the job may use {:.3g}, these processes used {:.1f}",
                    s.machine_cores, *s.busy_cores, s.usable_cores, own)};
  return {fmt::format("of {:.3g} usable cores the machine used {:.1f}, these processes {:.1f}", s.usable_cores,
                      *s.busy_cores, own)};
}

std::optional<HostTime> host_time(const HostSummary& s) {
  if (s.usable_cores <= 0 || s.owners == 0) return std::nullopt;
  HostTime host{.usable_cores = s.usable_cores, .busy_cores = s.busy_cores, .helper_cores = s.helper_cpu};
  host.helpers = static_cast<std::int64_t>(s.helpers);
  host.helpers_idle = s.helper_looks.share({WaitChannel::kPipe});
  host.owner_cores = (s.owner_cpu + s.owner_threads) * static_cast<double>(s.owners);
  return host;
}

namespace {

constexpr double kIdleAtMost = 0.2;  // busy share of a phase that is idle for the most part

// Whether kernels ran in the middle of it for longer than what counts as idle: its ends are those of windows.
bool is_interrupted(const Analysis& a, std::size_t device, const Window& time) {
  const auto least = static_cast<Nanos>(a.limits[Threshold::kPhaseIdleBelow] * static_cast<double>(a.meta.interval));
  const auto& slices = a.devices[device].slices;
  auto slice = std::partition_point(slices.begin(), slices.end(),
                                    [&](const Slice& s) { return s.end <= time.begin + a.meta.interval; });
  for (; slice != slices.end() && slice->begin < time.end - a.meta.interval; ++slice)
    if (is_busy(slice->account) && slice->end - slice->begin > least) return true;
  return false;
}

// How much of these claims on one device lies in each of the windows, which are in order.
std::vector<Nanos> lengths_in(const std::vector<Window>& windows, const Claims& claims) {
  std::vector<Nanos> lengths(windows.size(), 0);
  std::size_t i = 0;
  for (const ClaimedPiece& piece : claims) {
    while (i < windows.size() && windows[i].end <= piece.begin) ++i;
    for (std::size_t at = i; at < windows.size() && windows[at].begin < piece.end; ++at)
      lengths[at] += std::min(piece.end, windows[at].end) - std::max(piece.begin, windows[at].begin);
  }
  return lengths;
}

}  // namespace

std::vector<Window> claimed_times(const Claims& claims, const Analysis& a, std::size_t phase) {
  Claims all, idle;
  const std::size_t device = a.phases[phase].device;
  const auto in_it = [&](const Slice& slice) {
    return slice.phase == static_cast<std::int32_t>(phase) && during_work(a, device, slice);
  };
  claim_on(a, device, in_it, all);
  claim_on(
      a, device, [&](const Slice& slice) { return in_it(slice) && !is_busy(slice.account); }, idle);
  const Claims both = common(idle, claims);
  const auto covered = [&](Nanos claimed, Nanos whole) {
    return static_cast<double>(claimed) >=
           a.limits[Threshold::kCovers] * static_cast<double>(std::max<Nanos>(1, whole));
  };
  if (!covered(length(both), length(idle))) return {};
  std::vector<Window> times = times_of(all), claimed;
  const std::vector<Nanos> of_both = lengths_in(times, both), of_idle = lengths_in(times, idle);
  for (std::size_t i = 0; i < times.size(); ++i)
    if (covered(of_both[i], of_idle[i])) claimed.push_back(times[i]);
  return claimed;
}

bool recurs(const Analysis& a, std::int32_t number) {
  if (!a.is_pause(number)) return false;
  const Phase& phase = a.phases[static_cast<std::size_t>(number)];
  if (!phase.named_by.empty()) return true;
  const double util = phase.gpu_util_ratio.value_or(0);
  double busiest = 0;
  for (const Phase& other : a.phases)
    if (other.device == phase.device) busiest = std::max(busiest, other.gpu_util_ratio.value_or(0));
  return phase.count > 1 &&
         (phase.name == "idle" ? util < kIdleAtMost : busiest - util >= a.limits[Threshold::kPhaseContrast]);
}

namespace {

// Without those that the begin or the end of the recording cut off, and that are shorter than any other: of these it
// is not known how long they were.
std::vector<Window> whole_times(const Analysis& a, const std::vector<Window>& times) {
  const auto is_cut = [&](const Window& time) {
    return time.begin <= a.window.begin + a.meta.interval || time.end >= a.window.end - a.meta.interval;
  };
  Nanos shortest = std::numeric_limits<Nanos>::max();
  for (const Window& time : times)
    if (!is_cut(time)) shortest = std::min(shortest, time.length());
  std::vector<Window> whole = times;
  std::erase_if(whole,
                [&](const Window& time) { return is_cut(time) && time.length() + 2 * a.meta.interval < shortest; });
  return whole.empty() ? times : whole;
}

constexpr double kQuiet = 0.05;  // an idle phase in which more is read is idle for the most part only

// Found in windows of a second: the kernels at its ends are not of the idle time that is told.
double idle_part(const Phase& phase) {
  const double util = phase.gpu_util_ratio.value_or(0);
  return util < kQuiet ? 1 - util : 1;
}

// By phase the claimed times that are told as recurrences.
std::map<std::size_t, std::vector<Window>> recurring_times(const Analysis& a, const Claims& claims) {
  std::set<std::size_t> told;  // the job itself says what recurs there, and how often
  for (const Phase& phase : a.phases)
    if (!phase.named_by.empty() && phase.named_by != "stacks") told.insert(phase.device);
  std::map<std::size_t, std::vector<Window>> all;
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    const Phase& phase = a.phases[i];
    const bool at_rest =
        phase.name == "idle" || (phase.named_by.empty() && phase.gpu_util_ratio.value_or(0) < kIdleAtMost);
    if (!at_rest || !recurs(a, static_cast<std::int32_t>(i)) || told.contains(phase.device)) continue;
    if (auto times = claimed_times(claims, a, i); times.size() > 1) all[i] = std::move(times);
  }
  return all;
}

}  // namespace

std::optional<Nanos> pace_of(const Analysis& a, const std::vector<Window>& times) {
  constexpr std::size_t kFewest = 4;
  if (times.size() < kFewest) return std::nullopt;
  std::vector<double> gaps, off;
  Nanos length = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    length += times[i].length();
    if (i > 0) gaps.push_back(static_cast<double>(times[i].begin - times[i - 1].begin));
  }
  const double middle = median(gaps);
  for (const double gap : gaps) off.push_back(std::abs(gap - middle));
  const bool apart = static_cast<double>(length) < middle * static_cast<double>(times.size());
  const bool steady = median(off) <= a.limits[Threshold::kPeriodSpread] * middle;
  return apart && steady ? std::optional(static_cast<Nanos>(middle)) : std::nullopt;
}

Nanos time_in_recurrences(const Analysis& a, const Claims& claims) {
  double sum = 0;
  for (const auto& [phase, times] : recurring_times(a, claims))
    for (const Window& time : times) sum += idle_part(a.phases[phase]) * static_cast<double>(time.length());
  return static_cast<Nanos>(sum);
}

namespace {

// "GPU 0 is idle for 2.0 s at a time, 12 times, every 60 s".
std::string recurrence(const Analysis& a, const Phase& phase, const std::vector<Window>& times) {
  const double util = phase.gpu_util_ratio.value_or(0);
  const auto interrupted = std::count_if(times.begin(), times.end(),
                                         [&](const Window& time) { return is_interrupted(a, phase.device, time); });
  const bool bursts = 4 * static_cast<std::size_t>(interrupted) >= times.size();  // not the first or the last alone
  const std::string idle = util >= kQuiet ? fmt::format("mostly idle ({} on average)", human_percent(util))
                           : bursts       ? fmt::format("hardly busy ({} on average)", human_percent(util))
                                          : "idle";
  const double part = bursts ? 1 : idle_part(phase);
  const std::vector<Window> whole = whole_times(a, times);
  Nanos total = 0, shortest = whole.front().length(), longest = shortest;
  for (const Window& time : whole) {
    total += time.length();
    shortest = std::min(shortest, time.length());
    longest = std::max(longest, time.length());
  }
  const auto each = static_cast<Nanos>(part * static_cast<double>(total) / static_cast<double>(whole.size()));
  const char* const mean = longest > 2 * shortest ? " on average" : "";
  // Its period is that of all its times.
  const bool all = times.size() == static_cast<std::size_t>(phase.count);
  const std::optional<Nanos> period = all && phase.period ? phase.period : pace_of(a, times);
  const std::size_t cut = times.size() - whole.size();  // one at the begin and one at the end at most
  const bool short_ones = each < 2 * a.meta.interval;   // others may lie between two readings
  return fmt::format("{} is {} for {} at a time{}, {}{} times{}{}{}", a.device_name(phase.device), idle,
                     human_duration(each), mean, short_ones ? "at least " : "", times.size(),
                     cut == 0   ? ""
                     : cut == 1 ? " (one of them cut off)"
                                : " (the first and the last cut off)",
                     period ? ", every " + human_duration(*period) : "",
                     util < kQuiet ? "; one reading of 0 % is no sign of a hang" : "");
}

}  // namespace

std::vector<std::string> recurrences(const Analysis& a, const Claims& claims) {
  std::vector<std::string> sentences;
  for (const auto& [phase, times] : recurring_times(a, claims))
    sentences.push_back(recurrence(a, a.phases[phase], times));
  return sentences;
}

namespace {

Window work_of(const DeviceTime& device) {
  const auto works = [](const Slice& slice) { return is_busy(slice.account); };
  const auto first = std::find_if(device.slices.begin(), device.slices.end(), works);
  const auto last = std::find_if(device.slices.rbegin(), device.slices.rend(), works);
  return first == device.slices.end() ? Window{} : Window{first->begin, last->end};
}

struct Third {
  Nanos claimed = 0;
  std::size_t pieces = 0;
  Nanos idle = 0;  // of its device, whatever for
};
using Thirds = std::array<Third, 3>;

// How much of `piece` lies in each third of the work.
template <class Add>
void over_thirds(const Window& work, Nanos begin, Nanos end, const Add& add) {
  const Nanos length = work.length() / 3;
  for (std::size_t i = 0; i < 3; ++i) {
    const Nanos from = work.begin + static_cast<Nanos>(i) * length;
    if (const Nanos here = std::min(end, from + length) - std::max(begin, from); here > 0) add(i, here);
  }
}

Thirds thirds_of(const DeviceTime& device, const Window& work, const Claims& claims, std::size_t index) {
  Thirds thirds;
  for (const ClaimedPiece& piece : claims)
    if (piece.device == index)
      over_thirds(work, piece.begin, piece.end, [&](std::size_t i, Nanos here) {
        thirds[i].claimed += here;
        ++thirds[i].pieces;
      });
  for (const Slice& slice : device.slices)
    if (is_held_idle(slice.account))
      over_thirds(work, slice.begin, slice.end, [&](std::size_t i, Nanos here) { thirds[i].idle += here; });
  return thirds;
}

}  // namespace

std::vector<std::string> growth(const Analysis& a, const Claims& claims) {
  constexpr Nanos kShortest = 10 * kSecond;
  constexpr std::size_t kFewest = 6;  // pieces in a third: of fewer one more is no growth
  constexpr double kTimes = 1.5, kPoints = 0.05, kEven = 0.2, kMuch = 0.3;
  std::vector<Nanos> of_device(a.devices.size());
  for (const ClaimedPiece& piece : claims) of_device[piece.device] += piece.end - piece.begin;
  if (claims.empty()) return {};
  const auto device =
      static_cast<std::size_t>(std::max_element(of_device.begin(), of_device.end()) - of_device.begin());
  const Window work = work_of(a.devices[device]);
  if (work.length() < kShortest) return {};
  const Nanos length = work.length() / 3;
  const Thirds thirds = thirds_of(a.devices[device], work, claims, device);
  // What grows while all idle time does not has only been told from the rest of it in another way.
  const Nanos more_idle = thirds[2].idle - thirds[0].idle;
  std::array<double, 3> share{};
  for (std::size_t i = 0; i < thirds.size(); ++i)
    share[i] = static_cast<double>(thirds[i].claimed) / static_cast<double>(length);
  if (thirds[0].pieces >= kFewest && share[2] <= kTimes * kPoints && share[0] >= kMuch && share[1] <= share[0] / 2)
    return {
        fmt::format("it takes less and less: {} of the first third of the time from the first kernel to the last, {} "
                    "of the second, {} of the third",
                    human_percent(share[0]), human_percent(share[1]), human_percent(share[2]))};
  if (std::any_of(thirds.begin(), thirds.end(), [](const auto& third) { return third.pieces < kFewest; })) return {};
  const double grown = share[2] - share[0];
  if (grown < kPoints || static_cast<double>(more_idle) < grown / 2 * static_cast<double>(length) ||
      share[2] < kTimes * share[0] || share[1] - share[0] < kEven * grown || share[2] - share[1] < kEven * grown)
    return {};
  return {
      fmt::format("it takes more and more: {} of the first third of the time from the first kernel to the last, {} of "
                  "the second, {} of the third",
                  human_percent(share[0]), human_percent(share[1]), human_percent(share[2]))};
}

std::string gpu_names(const Analysis& a, const std::vector<std::size_t>& devices) {
  std::vector<int> indices;
  std::vector<Device> of_machines;
  for (const std::size_t device : devices) {
    indices.push_back(a.devices[device].device.index);
    if (!a.devices[device].device.host.empty()) of_machines.push_back(a.devices[device].device);
  }
  if (!of_machines.empty()) return gpus_on_machines(of_machines);
  if (indices.size() == 1) return fmt::format("GPU {}", indices[0]);
  const bool in_a_row = indices.back() - indices.front() + 1 == static_cast<int>(indices.size());
  if (indices.size() > 2 && in_a_row) return fmt::format("GPUs {} to {}", indices.front(), indices.back());
  std::string text = "GPUs ";
  for (std::size_t i = 0; i < indices.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == indices.size() ? " and " : ", ", indices[i]);
  return text;
}

std::string level_words(Metric metric, double level) {
  if (metric == Metric::kPower) return fmt::format("at {:.0f} W", level);
  return fmt::format("with {} {} of the time", metric == Metric::kSmActive ? "SMs active" : "memory traffic",
                     human_percent(level));
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

bool has_stacks(const Analysis& a) { return a.meta.tiers.find('Y') != std::string::npos; }

std::string_view stack_tool(const Analysis& a) { return without_python(a.meta) ? "gdb" : "headroom stacks --pid"; }

std::string stack_dump(const Analysis& a, std::string_view pid) {
  return without_python(a.meta) ? fmt::format("gdb -p {} -batch -ex 'thread apply all bt'", pid)
                                : fmt::format("headroom stacks --pid {}", pid);
}

bool too_short_to_list(const Analysis& a) {
  return static_cast<double>(a.meta.end - a.meta.start) <
         a.limits[Threshold::kListings] * static_cast<double>(a.job.listing_interval);
}

bool looks_often(const Analysis& a) { return a.meta.interval <= 100 * kMillisecond; }

std::string memory_grows(const Analysis& a, std::size_t device) {
  const auto& end = a.gpus[device].memory_end;
  const auto full = end ? end->full_in_seconds() : std::nullopt;
  if (!full || a.job.batch.present || *full > seconds(a.window.length())) return "";
  if (is_imported(a.meta) && a.ledger.busy(device) == 0) return "";  // what loads comes to an end
  return fmt::format(", and {} more each second: full in {} at this pace",
                     human_bytes(static_cast<std::int64_t>(end->pace)),
                     human_duration(static_cast<Nanos>(*full * kSecond)));
}

}  // namespace headroom::diagnose
