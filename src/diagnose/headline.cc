// SPDX-License-Identifier: Apache-2.0
#include "diagnose/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include "base/human.h"
#include "base/visible.h"
#include "diagnose/claims.h"
#include "diagnose/idle_parts.h"
#include "diagnose/log_ends.h"
#include "diagnose/named_code.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/losses.h"
#include "model/observations.h"
#include "model/places.h"

namespace headroom::diagnose {

namespace {

struct Phrase {
  Account account;
  std::string_view text;  // "31 % …"
};
constexpr std::string_view kCode = "waited {} for code of the job", kAsleep = "waited {} while the job slept or waited",
                           kWantsCore = "waited {} for code of the job that wanted a CPU core";
constexpr std::array kPhrases{
    Phrase{Account::kInput, "waited {} for its data"},
    Phrase{Account::kHostCode, kCode},
    Phrase{Account::kStartup, "waited {} for the start-up"},
    Phrase{Account::kCheckpoint, "waited {} while the job wrote to storage"},
    Phrase{Account::kValidationHost, "waited {} while the job validated"},
    Phrase{Account::kTransfer, "waited {} for copies"},
    Phrase{Account::kSync, "waited {} while the job synchronised"},
    Phrase{Account::kPeers, "waited {} for other processes of the job"},
    Phrase{Account::kTeardown, "stayed held for {} after the last kernel"},
    Phrase{Account::kHung, "hung for {}"},
    Phrase{Account::kStopped, "stood idle {} while the job was stopped"},
    Phrase{Account::kUnexplained, "stood idle {} for reasons not seen"},
    Phrase{Account::kTaskWaiting, "stood free {} while tasks waited"},
    Phrase{Account::kNotUsed, "went unused for {}"},
    Phrase{Account::kNoTask, "had nothing to do for {}"},
    Phrase{Account::kForeign, "computed {} for others"},
    Phrase{Account::kUnobserved, "went unobserved for {}"},
};

// The devices that the headline is about, and those of which it only says that nobody used them, or who did.
struct Cast {
  std::vector<std::size_t> used, unused, of_others, unreported;
};

Cast cast_of(const Analysis& a) {
  Cast cast;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const bool free = a.gpus[device].idle_peer || a.ledger.total(Account::kNotUsed, device) == a.ledger.span();
    (a.gpus[device].unreported  ? cast.unreported
     : a.gpus[device].of_others ? cast.of_others
     : free                     ? cast.unused
                                : cast.used)
        .push_back(device);
  }
  if (cast.used.empty()) std::swap(cast.used, cast.unused);
  return cast;
}

std::string subject(const Analysis& a, const std::vector<std::size_t>& devices) {
  if (devices.size() < a.devices.size()) return gpu_names(a, devices);
  return devices.size() == 1 ? "The GPU" : fmt::format("The {} GPUs", devices.size());
}
// " (GPU 0 95 %, GPU 1 5 %)" where the shares of these devices lie far apart; else "". Of many the ends.
template <class ShareOf>
std::string apart(const Analysis& a, const std::vector<std::size_t>& devices, const ShareOf& share_of) {
  constexpr std::size_t kNamed = 4;
  if (devices.empty()) return "";
  const auto less = [&](std::size_t x, std::size_t y) { return share_of(x) < share_of(y); };
  const auto [least, most] = std::minmax_element(devices.begin(), devices.end(), less);
  if (share_of(*most) - share_of(*least) < 2 * a.limits[Threshold::kMaterial]) return "";
  if (devices.size() > kNamed)
    return fmt::format(" (from {} on {} to {} on {})", human_percent(share_of(*least)), a.device_name(*least),
                       human_percent(share_of(*most)), a.device_name(*most));
  std::vector<std::string> words;
  for (const std::size_t device : devices)
    words.push_back(fmt::format("{} {}", a.device_name(device), human_percent(share_of(device))));
  return fmt::format(" ({})", fmt::join(words, ", "));
}
std::string mean_of(const std::string& shares) { return shares.empty() ? "" : " on average" + shares; }

double share_of_span(const Analysis& a, Nanos ns) {
  return static_cast<double>(ns) / static_cast<double>(std::max<Nanos>(1, a.ledger.span()));
}

std::string subject(const Analysis& a) {
  return a.devices.size() == 1 ? "The GPU" : fmt::format("The {} GPUs", a.devices.size());
}

std::string span_words(const Analysis& a) { return human_duration(a.ledger.span()); }

std::string tasks_words(const Analysis& a) {
  std::set<std::int32_t> of_window;
  for (const TaskAttempt& attempt : a.job.batch.attempts) of_window.insert(attempt.task);
  const std::size_t tasks = of_window.size();
  return fmt::format("{} {}", human_count(static_cast<std::int64_t>(tasks)), tasks == 1 ? "task" : "tasks");
}

// What else a batch's GPU time went into, after "31 % ".
std::string batch_words(const Analysis& a, Account account) {
  switch (account) {
    case Account::kStartup:
      return "was start-up of " + tasks_words(a);
    case Account::kDiscarded:
      return "went into work that was thrown away";
    case Account::kTaskWaiting:
      return "passed beside waiting tasks, the GPU free";
    case Account::kNoTask:
      return "had no task";
    case Account::kNotUsed:
      return "was given to tasks that used no GPU";
    case Account::kForeign:
      return "went to other people's kernels";
    case Account::kUnexplained:
      return "stood idle for reasons not seen";
    case Account::kUnderWay:
      return a.goes_on ? "went into tasks that are still under way"
                       : "went into tasks that were under way when the recording ended";
    default:
      return fmt::format("was {}", info(account).label);
  }
}

// "The 2 GPUs computed for 81 % of 0:47 each; 6 % was start-up of 252 tasks."
std::string batch_headline(const Analysis& a) {
  const Nanos useful = a.ledger.total(Account::kUseful), lost = a.ledger.total(Account::kDiscarded);
  const Nanos under_way = a.ledger.total(Account::kUnderWay);
  const bool none_counts = useful == 0 && lost + under_way > 0;
  Account largest = Account::kUseful;
  Nanos most = 0;
  for (const AccountInfo& account : kAccounts) {
    const bool said = account.id == Account::kUseful ||
                      (none_counts && (account.id == Account::kDiscarded || account.id == Account::kUnderWay));
    if (const Nanos ns = a.ledger.total(account.id); !said && ns > most) {
      most = ns;
      largest = account.id;
    }
  }
  std::vector<std::size_t> all(a.devices.size());
  std::iota(all.begin(), all.end(), 0U);
  std::string each = mean_of(apart(a, all, [&](std::size_t device) {
    const auto total = [&](Account account) { return a.ledger.total(account, device); };
    return share_of_span(
        a, total(Account::kUseful) + (none_counts ? total(Account::kDiscarded) + total(Account::kUnderWay) : 0));
  }));
  if (each.empty() && all.size() > 1) each = " each";
  std::string text =
      fmt::format("{} computed for {} of {}{}", subject(a),
                  human_percent(a.share(useful + (none_counts ? lost + under_way : 0))), span_words(a), each);
  if (none_counts && under_way == 0)
    text += ", all for work that was thrown away";
  else if (none_counts && lost == 0)
    text += a.goes_on ? ", all for tasks that are still under way"
                      : ", all for tasks that were under way when the recording ended";
  else if (none_counts)
    text += ", none of it for a task that has succeeded";
  if (a.share(most) >= a.limits[Threshold::kWorthSaying])
    text += fmt::format("; {} {}", human_percent(a.share(most)), batch_words(a, largest));
  return text + ".";
}

// ", mostly load (train.py)" where stacks name one function for most of an account; else "".
std::string mostly(const Analysis& a, const std::vector<std::size_t>& devices, Account account, Nanos all) {
  constexpr std::size_t kLongest = 40;
  if (all < kSecond) return "";  // shares of a handful of stacks would be accidents
  std::map<std::int32_t, Nanos> by_place;
  for (const LedgerEntry& entry : a.ledger.entries)
    if (entry.account == account && entry.where >= 0 &&
        std::find(devices.begin(), devices.end(), entry.device) != devices.end())
      by_place[entry.where] += entry.ns;
  const std::vector<NamedCode> named = named_code(a, by_place, account, all);
  std::map<std::string_view, double> by_function;
  for (const NamedCode& code : named) by_function[function_of(code.place)] += code.least;
  const auto most = std::max_element(by_function.begin(), by_function.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  if (most == by_function.end() || most->second < a.limits[Threshold::kMajority]) return "";
  if (most->first.size() > kLongest) return "";
  const bool one_place = function_of(named[0].place) == most->first && named[0].least >= a.limits[Threshold::kMajority];
  const bool at_its_line = one_place && interpreter_taken(a, account) == nullptr;
  return fmt::format(", mostly {}", at_its_line ? function_of(named[0].spot()) : most->first);
}

// "in get_batch", "before the first marked range": where in a profiler's trace most of the time lies for which nothing
// tells a reason; else "".
std::string phase_of_idle(const Analysis& a, const std::vector<std::size_t>& devices) {
  if (!is_profiled(a)) return "";
  const Claims idle = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && std::find(devices.begin(), devices.end(), device) != devices.end();
  });
  if (const std::string phase = phase_of_most(a, idle); !phase.empty()) return "in " + phase;
  constexpr double kMost = 0.8;
  const auto before = static_cast<double>(length(before_first_range(a, idle)));
  return before > 0 && before >= kMost * static_cast<double>(length(idle)) ? "before the first marked range" : "";
}

// "6:00", "3:00 to 6:00": how long these did hardly anything at the end.
std::string lengths_of_ends(const Analysis& a, const std::vector<std::size_t>& devices) {
  std::vector<Nanos> lengths;
  for (const std::size_t device : devices) lengths.push_back(a.window.end - a.gpus[device].quiet_end->from);
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  const std::string low = human_duration(*least), high = human_duration(*most);
  return low == high ? low : fmt::format("{} to {}", low, high);
}

// Whether of a log the share of one of these, of the time that its readings cover, is another than that of all the time
// by a point and more.
bool told_otherwise(const Analysis& a, const std::vector<std::size_t>& devices) {
  constexpr double kPoint = 0.01;
  if (!is_imported(a.meta)) return false;
  return std::any_of(devices.begin(), devices.end(), [&](std::size_t device) {
    const auto useful = static_cast<double>(a.ledger.total(Account::kUseful, device));
    const Nanos read = a.ledger.span() - a.ledger.total(Account::kUnobserved, device);
    return read > 0 && useful / static_cast<double>(read) - useful / static_cast<double>(a.ledger.span()) >= kPoint;
  });
}

// Of an account on a device, where what others wait for one that saves or validates counts as that: it is its
// finding's.
Nanos told_of(const Analysis& a, const std::vector<Finding>& findings, Account account, std::size_t device) {
  Nanos sum = a.ledger.total(account, device);
  for (const Finding& finding : findings) {
    const Account main = main_account(finding.claims);
    if (main != Account::kCheckpoint && main != Account::kValidationHost) continue;
    if (account != main && account != Account::kPeers) continue;
    for (const ClaimedPiece& piece : finding.claims)
      if (piece.device == device && piece.account == Account::kPeers)
        sum += (account == main ? 1 : -1) * (piece.end - piece.begin);
  }
  return sum;
}

// "GPU 0 computed for 17 % of 21.6 s. It waited 77 % for its data."
std::string about_used(const Analysis& a, const std::vector<Finding>& findings,
                       const std::vector<std::size_t>& devices) {
  const auto total = [&](Account account) {
    Nanos sum = 0;
    for (const std::size_t device : devices) sum += told_of(a, findings, account, device);
    return sum;
  };
  const Nanos time = a.ledger.span() * static_cast<Nanos>(devices.size());
  const auto share = [&](Nanos ns) { return static_cast<double>(ns) / static_cast<double>(std::max<Nanos>(1, time)); };
  const bool one = devices.size() == 1;
  bool by_read = false;  // shares are of what readings cover
  const auto uneven = [&](Account account) {
    return apart(a, devices, [&](std::size_t device) {
      const Nanos unread_there =
          by_read && account == Account::kUseful ? a.ledger.total(Account::kUnobserved, device) : 0;
      return static_cast<double>(told_of(a, findings, account, device)) /
             static_cast<double>(std::max<Nanos>(1, a.ledger.span() - unread_there));
    });
  };
  const Nanos useful = total(Account::kUseful), idle = total(Account::kUnexplained);
  std::string busy = human_percent(share(useful));
  constexpr Nanos kHardly = 20;  // of the time a twentieth
  Nanos pauses = 0, error = 0, ended = 0, busy_then = 0, before = 0;
  for (const LedgerEntry& entry : a.ledger.entries)
    if (entry.account == Account::kUnexplained && recurs(a, entry.phase)) pauses += entry.ns;
  std::vector<std::size_t> quiet;  // at the end
  for (const std::size_t device : devices) {
    if (a.gpus[device].quiet_end) quiet.push_back(device);
    for (const Slice& slice : a.devices[device].slices)
      if (slice.account == Account::kUnexplained && before_its_turn(a, device, slice)) {
        before += slice.end - slice.begin;
      } else if (at_a_quiet_end(a, device, slice)) {
        if (slice.account == Account::kUnexplained) ended += slice.end - slice.begin;
        if (is_busy(slice.account)) busy_then += slice.end - slice.begin;
      }
  }
  for (const std::size_t device : devices) error += a.gpus[device].busy_error;
  const double material = a.limits[Threshold::kMaterial];
  const double unread = share(total(Account::kUnobserved));
  std::string unknown =
      unread >= material || (unread > 0 && told_otherwise(a, devices))
          ? fmt::format("; for {} no reading says what {} did", human_percent(unread), one ? "it" : "they")
          : "";
  std::string least = unknown.empty() ? "" : "at least ";
  const std::string none =
      fmt::format("No kernel was seen{} in {}{}.",
                  devices.size() < a.devices.size() ? " on " + gpu_names(a, devices) : "", span_words(a), unknown);
  if (!a.job.has_contexts && a.ledger.busy() == 0 && idle > 0) return none;
  const Nanos read = time - total(Account::kUnobserved);
  std::string all = span_words(a);
  if (!unknown.empty() && read > 0 && is_imported(a.meta)) {  // who wrote the log was not there
    busy = human_percent(static_cast<double>(useful) / static_cast<double>(read));
    by_read = true;
    unknown =
        fmt::format("; for {} of {} no reading says what {} did", human_percent(unread), all, one ? "it" : "they");
    all = fmt::format("the {} that readings cover", human_duration(read / static_cast<Nanos>(devices.size())));
    least.clear();
  }
  const auto of_all = [&](Nanos ns) {
    return human_percent(static_cast<double>(ns) / static_cast<double>(std::max<Nanos>(1, by_read ? read : time)));
  };
  const bool waits = a.material(length(a.waits_in_kernels.claims));
  const char* const did = !waits ? "computed for" : one ? "had a kernel for" : "had kernels for";
  if (!a.job.has_contexts && before > 0 && useful > 0 &&
      static_cast<double>(ended + before) >= a.limits[Threshold::kMajority] * static_cast<double>(idle)) {
    const Turns turns = turns_of(a);
    return fmt::format("{} {} {}{} of {}{}{}. {} stood free until {} had been given back.", subject(a, devices), did,
                       least, busy, all, mean_of(uneven(Account::kUseful)), unknown, gpu_names(a, turns.later),
                       gpu_names(a, turns.first));
  }
  if (!a.job.has_contexts && static_cast<double>(ended) >= a.limits[Threshold::kMajority] * static_cast<double>(idle) &&
      ended > 0 && useful > 0)
    return fmt::format(
        "{} {} {}{} of {}{}{}. {} {}.", subject(a, devices), did, least, busy, all, mean_of(uneven(Account::kUseful)),
        unknown,
        quiet.size() == devices.size()
            ? fmt::format("For {} at the end", of_all(ended + busy_then))
            : fmt::format("On {} at the end, for {},", gpu_names(a, quiet), lengths_of_ends(a, quiet)),
        kHardly * busy_then <= ended + busy_then ? "hardly a kernel ran any more" : "far fewer kernels ran");
  if (!a.job.has_contexts && share(idle - pauses) >= material)
    return fmt::format("{} {} busy for {}{} of {}{}{}. Why {} idle otherwise cannot be told from this recording alone.",
                       subject(a, devices), one ? "was" : "were", share(error) >= material ? "about " : least, busy,
                       all, mean_of(uneven(Account::kUseful)), unknown, one ? "it was" : "they were");
  if (!a.job.has_contexts && useful > 0 &&
      static_cast<double>(pauses) >= a.limits[Threshold::kMajority] * static_cast<double>(idle) && pauses > 0)
    return fmt::format("{} {} {}{} of {}{} and stood idle {}, in phases that recur{}.", subject(a, devices), did, least,
                       busy, all, mean_of(uneven(Account::kUseful)), of_all(idle), unknown);
  std::string text = fmt::format("{} {} {}{} of {}{}{}.", subject(a, devices), did, least, busy, all,
                                 mean_of(uneven(Account::kUseful)), unknown);
  if (useful == 0 && !unknown.empty() && total(Account::kForeign) == 0) text = none;
  const Phrase* largest = nullptr;
  Nanos most = 0;
  // Whether findings that are so have most of that time.
  const auto mostly_so = [&](const auto& is_so) {
    Nanos so = 0;
    for (const Finding& finding : findings) so += is_so(finding) ? finding.cost() : 0;
    return static_cast<double>(so) >= a.limits[Threshold::kMajority] * static_cast<double>(most);
  };
  const auto words = [&](const Phrase& phrase) -> std::string_view {
    if (phrase.account == Account::kNoTask && a.job.has_job)  // which may have done something else
      return "stood without a process of the job for {}";
    const bool open = phrase.account == Account::kHostCode || phrase.account == Account::kUnexplained;
    // Whose prompt it is at, and what it sleeps for, is no code that could be cheaper.
    if (open && mostly_so([](const Finding& f) { return f.cause == Cause::kInteractiveHoldingGpu; }))
      return "waited {} for somebody";
    if (phrase.account == Account::kHostCode && mostly_so([](const Finding& f) { return f.asleep || f.mostly_waits; }))
      return kAsleep;
    if (phrase.account == Account::kHostCode && mostly_so([](const Finding& f) {
          return f.cause == Cause::kCpuOversubscribed && main_account(f.claims) == Account::kHostCode;
        }))
      return kWantsCore;
    if (phrase.account == Account::kSync && mostly_so([](const Finding& f) {
          return f.cause == Cause::kCpuOversubscribed && main_account(f.claims) == Account::kSync;
        }))
      return "waited {} while the job synchronised and wanted a CPU core";
    if (phrase.account == Account::kSync && mostly_so([](const Finding& f) {
          return f.cause == Cause::kGilContention && main_account(f.claims) == Account::kSync;
        }))
      return "waited {} for Python's interpreter (GIL)";
    if (phrase.account == Account::kCheckpoint && mostly_so([](const Finding& f) {
          return f.cause == Cause::kCheckpointSync && main_account(f.claims) == Account::kCheckpoint;
        }))
      return "waited {} while the job saved its state";
    if (phrase.account == Account::kTeardown && goes_on(a.meta))
      return "stayed held for {} after the last kernel so far";
    return phrase.text;
  };
  for (const Phrase& phrase : kPhrases)
    if (const Nanos ns = total(phrase.account); ns > most &&
                                                (phrase.account != Account::kUnobserved || unknown.empty()) &&
                                                (phrase.account != Account::kNotUsed || !may_have_missed_kernels(a))) {
      most = ns;
      largest = &phrase;
    }
  if (!largest || share(most) < a.limits[Threshold::kWorthSaying]) return text;
  const double foreign = share(total(Account::kForeign));
  const std::string others = largest->account != Account::kForeign && foreign >= material
                                 ? fmt::format(" Kernels of other programs ran for {}.", human_percent(foreign))
                                 : "";
  std::string shares = uneven(largest->account);
  const bool code =
      (words(*largest) == kCode || words(*largest) == kAsleep || words(*largest) == kWantsCore) && shares.empty();
  if (code) shares = mostly(a, devices, largest->account, most);
  const std::string phase = largest->account == Account::kUnexplained ? phase_of_idle(a, devices) : "";
  if (!phase.empty())
    return text +
           fmt::format(" {} stood idle {}{}, most of it {}.", one ? "It" : "They", human_percent(share(most)),
                       shares.empty() ? "" : " on average" + shares, phase) +
           others;
  return text +
         fmt::format(" {} {}{}.",
                     one                      ? "It"
                     : shares.empty() || code ? "They"
                                              : "On average they",
                     fmt::format(fmt::runtime(words(*largest)), human_percent(share(most))), shares) +
         others;
}

// " While memory was taken on it (5:40 of 10:00) it was busy for 90 %.": of a log of which a job had a part only, where
// that tells more than the mean of all of it.
std::string while_held(const Analysis& a, const std::vector<std::size_t>& devices) {
  if (a.job.has_contexts || !is_imported(a.meta)) return "";
  Nanos held = 0, observed = 0;
  double busy = 0;
  std::size_t known = 0;
  for (const std::size_t device : devices) {
    if (!a.gpus[device].held) continue;
    const HeldMemory& one = *a.gpus[device].held;
    held += one.held, observed += one.observed, ++known;
    busy += one.busy * static_cast<double>(one.held);
  }
  if (known == 0 || known != devices.size()) return "";
  Nanos useful = 0;
  for (const std::size_t device : devices) useful += a.ledger.total(Account::kUseful, device);
  const double share = busy / static_cast<double>(held);
  const double of_all = share_of_span(a, useful / static_cast<Nanos>(devices.size()));
  if (share - of_all < a.limits[Threshold::kMaterial]) return "";
  const auto each = static_cast<Nanos>(devices.size());
  return fmt::format(" While memory was taken there ({} of {}{}), {} for {}.", human_duration(held / each),
                     human_duration(observed / each), devices.size() == 1 ? "" : " on average",
                     devices.size() == 1 ? "it was busy" : "they were busy", human_percent(share));
}

// Whether some of what counts its steps was lost; those that no line tells any more, as after an epoch's last one, are
// in no count of lines.
bool steps_lost(const Analysis& a) {
  if (a.work->via == "output") return true;
  const LossKind kind = LossKind::kMarkLost;
  return std::any_of(a.losses.begin(), a.losses.end(), [&](const Loss& loss) { return loss.what == info(kind).name; });
}

std::string rate_words(double rate) { return human_figure(rate, 3); }

}  // namespace

namespace {

// "The driver lost GPU 1. "; nothing where it lost none of the budget.
std::string lost_words(const Analysis& a) {
  std::vector<std::size_t> gone;
  bool back = true;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const LostDevice& lost : a.lost) {
      if (lost.source != a.devices[device].source) continue;
      if (gone.empty() || gone.back() != device) gone.push_back(device);
      back &= unread_around(a, lost).end < a.window.end;
    }
  if (gone.empty()) return "";
  const std::string names = gone.size() < a.devices.size() ? gpu_names(a, gone)
                            : gone.size() == 1             ? "the GPU"
                                                           : fmt::format("the {} GPUs", gone.size());
  return fmt::format("The driver lost {}{}. ", names, back ? " for a time" : "");
}

// Whether the kernels that wait, if they do, are those of a single GPU beside one that works.
bool may_have_a_job_of_its_own(const Analysis& a) {
  const Claims& claims = a.waits_in_kernels.claims;
  return a.waits_in_kernels.worker && std::all_of(claims.begin(), claims.end(), [&](const ClaimedPiece& piece) {
           return piece.device == claims.front().device;
         });
}

constexpr const char* kTellsNothing = "That tells nothing of the time before and after";

// " GPU 0: 26.7 GiB of 31.8 GiB of memory in use, 412 W.": of a single reading of a few GPUs.
std::string levels_then(const Analysis& a) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> gpus;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats *memory = a.stats_of(device, Metric::kMemoryUsed), *power = a.stats_of(device, Metric::kPower);
    std::string text;
    const auto total = a.devices[device].device.memory_total_bytes;
    if (memory && memory->samples > 0)
      text = fmt::format("{}{} of memory in use", human_bytes(static_cast<std::int64_t>(memory->max)),
                         total ? " of " + human_bytes(*total) : "");
    if (power && power->samples > 0) text += fmt::format("{}{:.0f} W", text.empty() ? "" : ", ", power->max);
    if (!text.empty()) gpus.push_back(fmt::format("{}: {}", a.device_name(device), text));
  }
  return gpus.empty() || gpus.size() > kNamed ? "" : fmt::format(" {}.", fmt::join(gpus, "; "));
}

// Of a log that has too few readings to conclude anything.
std::string about_readings(const Analysis& a, std::int64_t readings) {
  double highest = 0, least = 0, most = 0;
  std::size_t gpus = 0;
  std::vector<std::size_t> free;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    if (!util || util->samples == 0) continue;
    ++gpus;
    highest = std::max(highest, util->max);
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    if (!memory || memory->samples == 0) continue;
    least += memory->min, most += memory->max;
    if (util->max == 0 && memory->max < kLeastContext) free.push_back(device);
  }
  std::string text = fmt::format("The log has {} of {}", count_of(readings, "reading"),
                                 gpus == 1 ? "the GPU" : fmt::format("each of {} GPUs", gpus));
  if (highest == 0 && most > 2 * least && readings > 1)
    text += fmt::format("; memory went from {} MiB to {} MiB, as at the start of a job",
                        static_cast<std::int64_t>(least) >> 20, static_cast<std::int64_t>(most) >> 20);
  text += fmt::format(".{} {}: log for minutes, once a second.", readings == 1 ? levels_then(a) : "", kTellsNothing);
  if (!free.empty())
    text += fmt::format(" No program had a context of CUDA on {} then.",
                        free.size() == gpus ? "any of them" : gpu_names(a, free));
  return text;
}

std::string about_moment(const Analysis& a, const std::vector<std::size_t>& devices) {
  Nanos busy = 0;
  for (const std::size_t device : devices) busy += a.ledger.busy(device);
  return fmt::format("{} computed for {} of the {} that were watched. {}: watch for a minute or more.",
                     subject(a, devices), human_percent(share_of_span(a, busy / static_cast<Nanos>(devices.size()))),
                     span_words(a), kTellsNothing);
}

std::string what_happened(const Analysis& a, const std::vector<Finding>& findings) {
  if (a.machine.empty() && !a.ranks.empty()) {
    const RankPace& slowest = a.ranks.front();
    return fmt::format(
        "Of {} ranks that count their steps, {} was the slowest: {:.2f} times the median of its peers in {} "
        "steps in a row, {:.2f} times in all {}. No GPU was recorded.",
        a.ranks.size(), slowest.name, slowest.slowest, slowest.to - slowest.from + 1, slowest.all, slowest.steps);
  }
  if (a.machine.empty() && a.goes_on && a.window.end <= a.window.begin) return "Nothing has been read yet.";
  if (a.machine.empty()) return fmt::format("No GPU was recorded in {}.", span_words(a));
  if (a.devices.empty()) return fmt::format("The job was given no GPU and used none in {}.", span_words(a));
  if (a.job.batch.present) return batch_headline(a);
  const auto set = [&](Cause cause) {
    return std::any_of(findings.begin(), findings.end(), [&](const auto& f) { return f.cause == cause; });
  };
  if (set(Cause::kJobNeverUsesGpu))
    return fmt::format("The job {} a GPU in {}.", was_met_midway(a) ? "did not use" : "never used", span_words(a));
  const Cast cast = cast_of(a);
  if (cast.used.empty())
    return fmt::format("What the GPUs did in {} is unknown: {}.", span_words(a),
                       !cast.unreported.empty() && logged_no_utilisation(a, cast.unreported.front())
                           ? "the log has " + no_utilisation_words(a)
                           : std::string("their utilisation was not reported"));
  if (const auto readings = too_few_readings(a)) return about_readings(a, *readings);
  const Nanos unobserved = a.ledger.total(Account::kUnobserved);
  if (unobserved == a.ledger.budget()) return fmt::format("No reading covers these {}.", span_words(a));
  if (watched_for_a_moment(a)) return about_moment(a, cast.used);
  std::string text = about_used(a, findings, cast.used) + while_held(a, cast.used);
  for (const Finding& finding : findings) {
    const bool waits = !finding.candidates.empty() && finding.candidates.front() == Cause::kHang &&
                       !finding.claims.empty() && finding.claims.front().account == Account::kUseful;
    if (waits) text += fmt::format(" In {} of it their kernels only waited.", human_percent(a.share(finding.cost())));
  }
  if (const Nanos waited = length(a.waits_in_kernels.claims); a.material(waited) && a.waits_in_kernels.everywhere)
    text += fmt::format(" In {} of it kernels hardly worked.", human_percent(a.share(waited)));
  else if (a.material(waited))
    text += fmt::format(" In {} of it kernels {} another GPU{}.", human_percent(a.share(waited)),
                        may_have_a_job_of_its_own(a) ? "hardly worked beside" : "only waited for",
                        may_have_a_job_of_its_own(a) ? ", and may have waited" : "");
  if (set(Cause::kOwnersUnknown)) text += " Whose kernels they were is unknown.";
  if (!cast.unused.empty()) {
    const bool touched = std::any_of(cast.unused.begin(), cast.unused.end(),
                                     [&](std::size_t device) { return a.ledger.busy(device) > 0; });
    if (a.job.owners_unknown)
      text += fmt::format(" On {} {} kernel ran.", gpu_names(a, cast.unused), touched ? "hardly a" : "no");
    else
      text += fmt::format(" {} {} {}.", gpu_names(a, cast.unused), cast.unused.size() == 1 ? "was" : "were",
                          touched                      ? "hardly used"
                          : a.goes_on                  ? "not used so far"
                          : may_have_missed_kernels(a) ? "not seen in use"
                                                       : "never used");
  }
  if (!cast.of_others.empty())
    text += fmt::format(" {} {} used by other programs alone.", gpu_names(a, cast.of_others),
                        cast.of_others.size() == 1 ? "was" : "were");
  if (a.work && a.work->steps_per_second) {
    const std::string rate =
        (steps_lost(a) ? "at least " : "") + rate_words(*a.work->steps_per_second) + " steps per second";
    if (a.work->processes > 1)
      text += fmt::format(" Of {} processes that count steps, the one with most did {} from its first to its last.",
                          a.work->processes, rate);
    else
      text += fmt::format(" From its first step to its last the job did {}{}.", rate,
                          a.work->samples_per_second
                              ? fmt::format(", {} samples per second", rate_words(*a.work->samples_per_second))
                              : "");
  }
  if (!cast.unreported.empty()) text += fmt::format(" {} reported no utilisation.", gpu_names(a, cast.unreported));
  if (const auto shares = a.meta.extra.find("processes"); shares != a.meta.extra.end())
    text += fmt::format(" In the log are several processes, with these mean shares of the SMs: {}.",
                        visible(shares->second));
  else if (const std::string named = named_processes(a); !named.empty())
    text += fmt::format(" Processes in the log: {}.", named);
  if (const std::string users = users_words(a); !users.empty())
    text += fmt::format(" Processes in the log: {}.", users);
  if (const auto sharing = a.meta.extra.find("sharing"); sharing != a.meta.extra.end())
    text += fmt::format(" {}.", visible(sharing->second));
  if (const auto newcomer = a.meta.extra.find("newcomer"); newcomer != a.meta.extra.end())
    text += fmt::format(" {}.", visible(newcomer->second));
  return text;
}

// ", in epoch 5 of 8"
std::string where_it_failed(const std::optional<Progress>& progress) {
  if (!progress || !progress->epoch) return "";
  const auto& epoch = *progress->epoch;
  const auto at = [](std::string_view unit, const Progress::At& one) {
    return fmt::format("{} {}{}", unit, one.number, one.of > 0 ? fmt::format(" of {}", one.of) : "");
  };
  const std::string fold = progress->fold ? at(" of fold", *progress->fold) : "";
  return fmt::format(", {} {}{}", epoch.done ? "after" : "in", at("epoch", epoch), fold);
}

// Who asks about a job that failed wants to know that first.
std::string failed_words(const Analysis& a, const std::optional<Progress>& progress) {
  const int code = a.meta.exit_code.value_or(0);
  if (a.job.batch.present || a.goes_on || a.window.end < a.meta.end || code == 0) return "";
  const std::string after = human_duration(a.ledger.span()) + where_it_failed(progress);
  if (const auto signal = a.signal(); signal && !a.returned)
    return fmt::format("Signal {} ended the job after {}. ", *signal, after);
  return fmt::format("The job failed after {}: exit code {}{}. ", after, code,
                     a.exception.empty() ? "" : fmt::format(" ({})", visible(a.exception)));
}

// Of a log of several machines which GPUs are whose.
std::string hosts_words(const Analysis& a) {
  const auto hosts = a.meta.extra.find("hosts");
  if (hosts == a.meta.extra.end()) return "";
  const bool several = hosts->second.find("), ") != std::string::npos;
  return fmt::format(" {} in the log: {}.", several ? "Hosts" : "Host", visible(hosts->second));
}

}  // namespace

namespace {

// A job that tells its epochs or steps has its start behind it, though no kernel of it has come: nothing waits for
// that.
std::string works_without_a_gpu(const Analysis& a, const std::optional<Progress>& progress) {
  if (!a.goes_on || !progress || !a.job.has_contexts || a.ledger.total(Account::kUseful) > 0) return "";
  if (std::any_of(a.job.uses.begin(), a.job.uses.end(), [](const ContextUse& use) { return use.ours; })) return "";
  return fmt::format("The job says how far it is, and was seen on no GPU in {}.", span_words(a));
}

}  // namespace

std::string headline(const Analysis& a, const std::vector<Finding>& findings, const std::optional<Progress>& progress) {
  const std::string without = works_without_a_gpu(a, progress);
  return (a.goes_on ? "So far: " : "") + lost_words(a) + failed_words(a, progress) +
         (without.empty() ? what_happened(a, findings) : without) + hosts_words(a);
}

}  // namespace headroom::diagnose
