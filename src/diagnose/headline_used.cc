// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/headline_parts.h"
#include "diagnose/idle_parts.h"
#include "diagnose/log_ends.h"
#include "diagnose/named_code.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"
#include "model/observations.h"
#include "model/places.h"

namespace headroom::diagnose {

namespace {

struct Phrase {
  Account account;
  std::string_view text;  // "31 % …"
};
constexpr std::string_view kCode = "waited {} for code of the job", kAsleep = "waited {} while the job slept or waited",
                           kWantsCore = "waited {} for code of the job that wanted a CPU core",
                           kForItsOther = "waited {} while another GPU of the job was at work";
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

// The time of an account on a device, where what ranks wait for one that saves or validates counts as that: it is its
// finding's.
class Told {
 public:
  Told(const Analysis& a, const std::vector<Finding>& findings)
      : a_(a), checkpoint_(a.devices.size()), validation_(a.devices.size()) {
    for (const Finding& finding : findings) {
      const Account main = main_account(finding.claims);
      if (main != Account::kCheckpoint && main != Account::kValidationHost) continue;
      std::vector<Nanos>& waits = main == Account::kCheckpoint ? checkpoint_ : validation_;
      for (const ClaimedPiece& piece : finding.claims)
        if (piece.account == Account::kPeers) waits[piece.device] += piece.end - piece.begin;
    }
  }
  [[nodiscard]] Nanos of(Account account, std::size_t device) const {
    const Nanos sum = a_.ledger.total(account, device);
    if (account == Account::kCheckpoint) return sum + checkpoint_[device];
    if (account == Account::kValidationHost) return sum + validation_[device];
    return account == Account::kPeers ? sum - beside(device) : sum;
  }
  // What it waited for one that saves or validates.
  [[nodiscard]] Nanos beside(std::size_t device) const { return checkpoint_[device] + validation_[device]; }

 private:
  const Analysis& a_;
  std::vector<Nanos> checkpoint_, validation_;  // waits of ranks beside these, by device
};

// Of all time of these devices.
double share_of_time(const Analysis& a, Nanos ns, const std::vector<std::size_t>& devices) {
  const Nanos time = a.ledger.span() * static_cast<Nanos>(devices.size());
  return as_share(ns, time);
}

// "; for 8 % no reading says what it did", of a share and, where that is said, of what time it is; "" where readings
// cover nearly all.
std::string unread_words(const Analysis& a, const std::vector<std::size_t>& devices, const std::string& of) {
  const double unread = share_of_time(a, total_of(a, Account::kUnobserved, devices), devices);
  if (unread < a.limits[Threshold::kMaterial] && (unread <= 0 || !told_otherwise(a, devices))) return "";
  return fmt::format("; for {}{} no reading says what {} did", human_percent(unread), of,
                     devices.size() == 1 ? "it" : "they");
}

std::string no_kernel_words(const Analysis& a, const std::vector<std::size_t>& devices) {
  return fmt::format("No kernel was seen{} in {}{}.",
                     devices.size() < a.devices.size() ? " on " + gpu_names(a, devices) : "", span_words(a),
                     unread_words(a, devices, ""));
}

// How much of the time these devices were busy.
struct BusyWords {
  std::string share;    // "17 % of 21.6 s", with the share of each where they lie far apart
  std::string least;    // "at least " where readings are missing
  std::string unknown;  // "; for 8 % no reading says what it did"
  Nanos time = 0;       // of them together, which shares are of
};

BusyWords busy_words(const Analysis& a, const std::vector<std::size_t>& devices) {
  const auto count = static_cast<Nanos>(devices.size());
  const Nanos time = a.ledger.span() * count, read = time - total_of(a, Account::kUnobserved, devices);
  const std::string unknown = unread_words(a, devices, ""), span = span_words(a);
  const bool of_read = !unknown.empty() && read > 0 && is_imported(a.meta);  // who wrote the log was not there
  const std::string shares = apart_words(a, devices, [&](std::size_t device) {
    const Nanos unread = of_read ? a.ledger.total(Account::kUnobserved, device) : 0;
    return as_share(a.ledger.total(Account::kUseful, device), a.ledger.span() - unread);
  });
  const Nanos of = of_read ? read : time;
  const double busy = as_share(total_of(a, Account::kUseful, devices), of);
  return {.share = fmt::format("{} of {}{}", human_percent(busy),
                               of_read ? fmt::format("the {} that readings cover", human_duration(read / count)) : span,
                               mean_of(shares)),
          .least = unknown.empty() || of_read ? "" : "at least ",
          .unknown = of_read ? unread_words(a, devices, " of " + span) : unknown,
          .time = of};
}

// "GPU 0 computed for at least 17 % of 21.6 s"
std::string worked_words(const Analysis& a, const std::vector<std::size_t>& devices, const BusyWords& busy) {
  const bool waits = a.material(length(a.waits_in_kernels.claims));
  const char* const did = !waits ? "computed for" : devices.size() == 1 ? "had a kernel for" : "had kernels for";
  return fmt::format("{} {} {}{}", subject(a, devices), did, busy.least, busy.share);
}

// Where the idle time of a log lies for which nothing tells a reason.
struct OpenIdle {
  Nanos all = 0;
  Nanos in_phases = 0;  // that recur
  Nanos before = 0;     // before its job, which had to wait for another one's end
  Nanos at_end = 0;     // after the last kernel, or where hardly one ran any more ...
  Nanos busy_then = 0;  // ... beside these
};

OpenIdle open_idle(const Analysis& a, const std::vector<std::size_t>& devices) {
  OpenIdle idle;
  idle.all = total_of(a, Account::kUnexplained, devices);
  for (const LedgerEntry& entry : a.ledger.entries)
    if (entry.account == Account::kUnexplained && recurs(a, entry.phase)) idle.in_phases += entry.ns;
  for (const std::size_t device : devices)
    for (const Slice& slice : a.devices[device].slices) {
      const Nanos length = slice.end - slice.begin;
      const bool open = slice.account == Account::kUnexplained;
      if (open && before_its_turn(a, device, slice)) {
        idle.before += length;
      } else if (at_a_quiet_end(a, device, slice)) {
        if (open) idle.at_end += length;
        if (is_busy(slice.account)) idle.busy_then += length;
      }
    }
  return idle;
}

// "For 30 % at the end hardly a kernel ran any more"
std::string quiet_words(const Analysis& a, const std::vector<std::size_t>& devices, const OpenIdle& idle, Nanos time) {
  constexpr Nanos kHardly = 20;  // of the time a twentieth
  std::vector<std::size_t> quiet;
  for (const std::size_t device : devices)
    if (a.gpus[device].quiet_end) quiet.push_back(device);
  const Nanos end = idle.at_end + idle.busy_then;
  const double share = as_share(end, time);
  return fmt::format("{} {}",
                     quiet.size() == devices.size()
                         ? fmt::format("For {} at the end", human_percent(share))
                         : fmt::format("On {} at the end, for {},", gpu_names(a, quiet), lengths_of_ends(a, quiet)),
                     kHardly * idle.busy_then <= end ? "hardly a kernel ran any more" : "far fewer kernels ran");
}

// Of readings alone: where the GPUs were idle, as why is not told. Nothing where processes were seen, or where they
// hardly were idle.
std::optional<std::string> about_log(const Analysis& a, const std::vector<std::size_t>& devices,
                                     const BusyWords& busy) {
  if (a.job.has_contexts) return std::nullopt;
  const OpenIdle idle = open_idle(a, devices);
  if (a.ledger.busy() == 0 && idle.all > 0) return no_kernel_words(a, devices);
  const bool useful = total_of(a, Account::kUseful, devices) > 0;
  const auto mostly_so = [&](Nanos part) { return part > 0 && is_most(a, part, idle.all); };
  const std::string worked = worked_words(a, devices, busy);
  if (idle.before > 0 && useful && mostly_so(idle.at_end + idle.before)) {
    const Turns turns = turns_of(a);
    return fmt::format("{}{}. {} stood free until {} had been given back.", worked, busy.unknown,
                       gpu_names(a, turns.later), gpu_names(a, turns.first));
  }
  if (useful && mostly_so(idle.at_end))
    return fmt::format("{}{}. {}.", worked, busy.unknown, quiet_words(a, devices, idle, busy.time));
  const double material = a.limits[Threshold::kMaterial];
  if (share_of_time(a, idle.all - idle.in_phases, devices) >= material) {
    const bool one = devices.size() == 1;
    Nanos error = 0;
    for (const std::size_t device : devices) error += a.gpus[device].busy_error;
    return fmt::format("{} {} busy for {}{}{}. Why {} idle otherwise cannot be told from this recording alone.",
                       subject(a, devices), one ? "was" : "were",
                       share_of_time(a, error, devices) >= material ? "about " : busy.least, busy.share, busy.unknown,
                       one ? "it was" : "they were");
  }
  if (useful && mostly_so(idle.in_phases))
    return fmt::format("{} and stood idle {}, in phases that recur{}.", worked,
                       human_percent(as_share(idle.all, busy.time)), busy.unknown);
  return std::nullopt;
}

// How a loss is said where most of it is of findings that tell it nearer than its account does.
struct NearerPhrase {
  Account account;
  bool (*is_told_by)(const Finding& finding, Account account);
  std::string_view text;
};

// Whose prompt it is at, and what it sleeps for, is no code that could be cheaper.
bool waits_for_somebody(const Finding& finding, Account) { return finding.cause == Cause::kInteractiveHoldingGpu; }
bool said_asleep(const Finding& finding, Account) { return finding.asleep || finding.mostly_waits; }
bool made_by_threads(const Finding& finding, Account account) {
  return finding.by_threads && main_account(finding.claims) == account;
}
template <Cause kCause>
bool mainly_by(const Finding& finding, Account account) {
  return finding.cause == kCause && main_account(finding.claims) == account;
}

constexpr std::array kNearerPhrases{
    NearerPhrase{Account::kHostCode, waits_for_somebody, "waited {} for somebody"},
    NearerPhrase{Account::kHostCode, mainly_by<Cause::kOneProcessImbalance>, kForItsOther},
    NearerPhrase{Account::kHostCode, said_asleep, kAsleep},
    NearerPhrase{Account::kHostCode, mainly_by<Cause::kCpuOversubscribed>, kWantsCore},
    NearerPhrase{Account::kInput, made_by_threads, "waited {} for what other threads of its process make"},
    NearerPhrase{Account::kUnexplained, waits_for_somebody, "waited {} for somebody"},
    NearerPhrase{Account::kSync, mainly_by<Cause::kCpuOversubscribed>,
                 "waited {} while the job synchronised and wanted a CPU core"},
    NearerPhrase{Account::kSync, mainly_by<Cause::kOneProcessImbalance>, kForItsOther},
    NearerPhrase{Account::kSync, mainly_by<Cause::kGilContention>, "waited {} for Python's interpreter (GIL)"},
    NearerPhrase{Account::kCheckpoint, mainly_by<Cause::kCheckpointSync>, "waited {} while the job saved its state"},
};

std::string_view words_of(const Analysis& a, const std::vector<Finding>& findings, const Phrase& phrase, Nanos lost) {
  if (phrase.account == Account::kNoTask && a.job.has_job) return "stood without a process of the job for {}";
  if (phrase.account == Account::kTeardown && goes_on(a.meta)) return "stayed held for {} after the last kernel so far";
  for (const NearerPhrase& nearer : kNearerPhrases) {
    if (nearer.account != phrase.account) continue;
    Nanos so = 0;
    for (const Finding& finding : findings) so += nearer.is_told_by(finding, phrase.account) ? finding.cost() : 0;
    if (is_most(a, so, lost)) return nearer.text;
  }
  return phrase.text;
}

struct LargestLoss {
  const Phrase* phrase = nullptr;
  Nanos time = 0;
};

LargestLoss largest_loss(const Analysis& a, const Told& told, const std::vector<std::size_t>& devices,
                         bool unread_said) {
  LargestLoss largest;
  for (const Phrase& phrase : kPhrases) {
    if (phrase.account == Account::kUnobserved && unread_said) continue;
    if (phrase.account == Account::kNotUsed && may_have_missed_kernels(a)) continue;
    Nanos time = 0;
    for (const std::size_t device : devices) time += told.of(phrase.account, device);
    if (time > largest.time) largest = {&phrase, time};
  }
  return largest;
}

// " It waited 77 % for its data."; "" where no loss is worth a word. What no reading covers may have been said.
std::string loss_words(const Analysis& a, const std::vector<Finding>& findings, const std::vector<std::size_t>& devices,
                       bool unread_said) {
  const Told told(a, findings);
  const LargestLoss loss = largest_loss(a, told, devices, unread_said);
  const Phrase* const largest = loss.phrase;
  if (!largest || share_of_time(a, loss.time, devices) < a.limits[Threshold::kWorthSaying]) return "";
  const double foreign = share_of_time(a, total_of(a, Account::kForeign, devices), devices);
  const std::string others = largest->account != Account::kForeign && foreign >= a.limits[Threshold::kMaterial]
                                 ? fmt::format(" Kernels of other programs ran for {}.", human_percent(foreign))
                                 : "";
  std::string shares =
      apart_words(a, devices, [&](std::size_t device) { return share_of_span(a, told.of(largest->account, device)); });
  const bool one = devices.size() == 1;
  const std::string lost = human_percent(share_of_time(a, loss.time, devices));
  const std::string phase = largest->account == Account::kUnexplained ? phase_of_idle(a, devices) : "";
  if (!phase.empty())
    return fmt::format(" {} stood idle {}{}, most of it {}.{}", one ? "It" : "They", lost, mean_of(shares), phase,
                       others);
  const std::string_view words = words_of(a, findings, *largest, loss.time);
  const bool code = (words == kCode || words == kAsleep || words == kWantsCore) && shares.empty();
  const std::string_view they = one ? "It" : shares.empty() || code ? "They" : "On average they";
  if (code) shares = mostly(a, devices, largest->account, loss.time);
  constexpr double kSeen = 0.01;  // what the accounts below show
  Nanos beside = 0;
  for (const std::size_t device : devices) beside += told.beside(device);
  const bool aside = largest->account == Account::kPeers && share_of_time(a, beside, devices) >= kSeen;
  return fmt::format(" {} {}{}{}.{}", they, fmt::format(fmt::runtime(words), lost), shares,
                     aside ? ", not counting waits for one that validates or saves" : "", others);
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
  const auto each = static_cast<Nanos>(devices.size());
  const double share = busy / static_cast<double>(held);
  const double of_all = share_of_span(a, total_of(a, Account::kUseful, devices) / each);
  if (share - of_all < a.limits[Threshold::kMaterial]) return "";
  return fmt::format(" While memory was taken there ({} of {}{}), {} for {}.", human_duration(held / each),
                     human_duration(observed / each), devices.size() == 1 ? "" : " on average",
                     devices.size() == 1 ? "it was busy" : "they were busy", human_percent(share));
}

// " From its first kernel to its last it computed for 97 %.": where most of what is lost is before or after that, and
// hardly anything within it.
std::string while_it_worked(const Analysis& a, const std::vector<Finding>& findings,
                            const std::vector<std::size_t>& devices) {
  constexpr double kWell = 0.9;
  const Phrase* const lost = largest_loss(a, Told(a, findings), devices, false).phrase;
  if (!lost || (lost->account != Account::kStartup && lost->account != Account::kTeardown)) return "";
  Nanos computed = 0, all = 0;
  for (const std::size_t device : devices) {
    const Window work = time_of_kernels(a.devices[device]);
    all += work.length();
    for (const Slice& slice : a.devices[device].slices)
      if (slice.account == Account::kUseful) computed += slice.end - slice.begin;
  }
  const double share = as_share(computed, all);
  if (share < kWell || share - share_of_time(a, computed, devices) < a.limits[Threshold::kMaterial]) return "";
  return fmt::format(" From {} first kernel to {} last {} computed for {}.", devices.size() == 1 ? "its" : "their",
                     devices.size() == 1 ? "its" : "their", devices.size() == 1 ? "it" : "they", human_percent(share));
}

}  // namespace

std::string about_used(const Analysis& a, const std::vector<Finding>& findings,
                       const std::vector<std::size_t>& devices) {
  const BusyWords busy = busy_words(a, devices);
  const std::string held = while_held(a, devices);
  if (const auto told = about_log(a, devices, busy)) return *told + held;
  const bool unread = !busy.unknown.empty();
  const bool none = unread && total_of(a, Account::kUseful, devices) + total_of(a, Account::kForeign, devices) == 0;
  return (none ? no_kernel_words(a, devices) : worked_words(a, devices, busy) + busy.unknown + ".") +
         loss_words(a, findings, devices, unread) + while_it_worked(a, findings, devices) + held;
}

}  // namespace headroom::diagnose
