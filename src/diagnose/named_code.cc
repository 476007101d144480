// SPDX-License-Identifier: Apache-2.0
#include "diagnose/named_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>

#include "analyze/call_evidence.h"
#include "base/human.h"
#include "base/strings.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/words.h"
#include "model/advice_words.h"
#include "model/named_causes.h"
#include "model/places.h"
#include "stacks/families.h"

namespace headroom::diagnose {

namespace {

// Of code beside which kernels ran for a part of its time, that part may be another one than what was counted so: what
// it has less of the claimed time, other such code has more of it.
void find_limits(const Analysis& a, std::vector<NamedCode>& named) {
  constexpr double kAll = 0.9, kChance = 0.1;  // of the looks: an accident of sampling
  double claimed = 0, all_hidden = 0;
  for (NamedCode& code : named) {
    const auto known = a.code.idle_shares.find(code.place);
    const double idle = known == a.code.idle_shares.end() || known->second >= kAll ? 1 : known->second;
    if (idle < 1) code.beside_kernels = code.share * ((1 + kChance) / idle - 1), claimed += code.share;
    all_hidden += code.beside_kernels;
  }
  for (NamedCode& code : named) {
    code.least = code.most = code.share;
    if (code.beside_kernels <= 0) continue;
    code.least = std::max(0.0, code.share - (all_hidden - code.beside_kernels));
    code.most = std::min(claimed, code.share + code.beside_kernels);
  }
}

bool is_range(const NamedCode& code) { return code.most - code.least > 0.1; }

// "40 %", or "20 to 60 %".
std::string share_words(const NamedCode& code) {
  if (!is_range(code)) return human_percent(code.share);
  return fmt::format("{:.0f} to {}", 100 * code.least, human_percent(code.most));
}

}  // namespace

std::string NamedCode::spot() const { return with_line(place, line.line); }

std::vector<NamedCode> named_code(const Analysis& a, const std::map<std::int32_t, Nanos>& by_place, Account account,
                                  Nanos all) {
  std::vector<NamedCode> named;
  for (const auto& [place, ns] : by_place)
    named.push_back({.where = place,
                     .place = a.ledger.places[static_cast<std::size_t>(place)],
                     .line = a.ledger.line_of(place, account),
                     .share = static_cast<double>(ns) / static_cast<double>(all)});
  for (NamedCode& code : named) code.least = code.most = code.share;
  if (account != Account::kStartup) find_limits(a, named);  // no kernel runs before the first one
  std::stable_sort(named.begin(), named.end(), [](const auto& x, const auto& y) { return x.share > y.share; });
  return named;
}

std::vector<NamedCode> code_in(const Analysis& a, const Claims& claims) {
  std::map<std::int32_t, Nanos> by_place;
  for (const ClaimedPiece& piece : claims)
    if (piece.where >= 0) by_place[piece.where] += piece.end - piece.begin;
  return named_code(a, by_place, main_account(claims), length(claims));
}

bool is_called_compiling(const Analysis& a, const Claims& claims) {
  double share = 0;
  for (const NamedCode& code : code_in(a, claims)) {
    const std::string name = lower(function_of(code.place));
    if (name.find("compil") != std::string::npos || name.find("autotun") != std::string::npos) share += code.share;
  }
  return share >= a.limits[Threshold::kMajority];
}

double share_without_kernels(const Analysis& a, const Claims& claims, const std::map<std::string, double>& idle) {
  constexpr double kAlone = 0.9;  // of the looks at a place
  double alone = 0;
  for (const NamedCode& code : code_in(a, claims)) {
    const auto known = idle.find(code.place);
    if (known != idle.end() && known->second >= kAlone) alone += code.share;
  }
  return alone;
}

bool holds(const Analysis& a, SourceId process, std::size_t device) {
  return std::any_of(a.job.uses.begin(), a.job.uses.end(), [&](const ContextUse& use) {
    return use.ours && use.process == process && use.device == a.devices[device].source;
  });
}

const ThreadCode* interpreter_taken(const Analysis& a, Account account) {
  const auto code =
      std::find_if(a.code.other_threads.begin(), a.code.other_threads.end(), [&](const ThreadCode& other) {
        return other.account == account && !other.place.empty() &&
               other.with_interpreter >= a.limits[Threshold::kMajority];
      });
  const bool begins_or_ends = account == Account::kStartup || account == Account::kTeardown;
  return code == a.code.other_threads.end() || begins_or_ends ? nullptr : &*code;
}

bool mostly_at(const Analysis& a, const Claims& claims, const std::set<std::string>& places) {
  const auto is_there = [&](const ClaimedPiece& piece) {
    return piece.where >= 0 && places.contains(a.ledger.places[static_cast<std::size_t>(piece.where)]);
  };
  return is_most(a, length_of(claims, is_there), length(claims));
}

double own_code(const Analysis& a, const Claims& claims) {
  double own = 0;
  for (const NamedCode& code : code_in(a, claims))
    if (a.code.own.contains(std::string(function_of(code.place)))) own += code.share;
  return own;
}

double plain_share(const Analysis& a, const Claims& claims) {
  double plain = 0;
  for (const ClaimedPiece& piece : claims) {
    if (piece.where < 0) continue;
    const auto known = a.code.plain_shares.find(a.ledger.places[static_cast<std::size_t>(piece.where)]);
    if (known != a.code.plain_shares.end()) plain += known->second * static_cast<double>(piece.end - piece.begin);
  }
  return plain / static_cast<double>(std::max<Nanos>(1, length(claims)));
}

stacks::Family family_of(const Analysis& a, const ClaimedPiece& piece) {
  if (piece.where < 0) return stacks::Family::kNone;
  const auto known = a.code.families.find(a.ledger.places[static_cast<std::size_t>(piece.where)]);
  return known == a.code.families.end() ? stacks::Family::kNone : known->second;
}

double share_in(const Analysis& a, const Claims& claims, stacks::Family family) {
  const auto is_it = [&](const ClaimedPiece& piece) { return family_of(a, piece) == family; };
  return as_share(length_of(claims, is_it), length(claims));
}

namespace {

// Of processes that wait for one of them, the time of the GPU of that one: what the others wait for is there.
Claims of_the_busiest(const Analysis& a, const Claims& claims) {
  Claims busiest;
  double most = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Claims here;
    std::copy_if(claims.begin(), claims.end(), std::back_inserter(here),
                 [&](const ClaimedPiece& piece) { return piece.device == device; });
    const double cores = here.empty() ? 0 : host_during(a.job, a.devices, here).most_owner_cpu;
    if (cores <= most) continue;
    most = cores;
    busiest = std::move(here);
  }
  return busiest;
}

// Who sleeps may have a lock for that long; of a thread that runs nothing has to be guessed.
std::string asleep_beside(const Analysis& a, const HostSummary& s, const ThreadCode& code, const Claims& claims) {
  const double majority = a.limits[Threshold::kMajority];
  if (code.asleep_share < majority || on_a_lock(s, claims) < majority) return "";
  return fmt::format("; in {} of them another thread slept in {}: whether it has the lock meanwhile is not seen",
                     human_percent(code.asleep_share), code.asleep);
}

// Whether a thread is one of the loader's library: it loads, and who waits for it waits for data, in no lock of its.
bool is_of_the_loader(const Analysis& a, const std::string& place) {
  const auto family = a.code.families.find(place);
  if (family == a.code.families.end() || a.code.own.contains(std::string(function_of(place)))) return false;
  const Account account = info(family->second).account;
  return account == Account::kInput || account == Account::kTransfer;
}

// What keeps the main thread from running is before what it would run, and alone where it does so for most of the time.
// A wait for kernels lets go of the interpreter, so that it may be another's meanwhile without harm; who has it all the
// while keeps that wait from ending.
void blame_other_thread(const Analysis& a, const ThreadCode& code, Finding& finding) {
  constexpr double kAllTheWhile = 0.9;
  const bool in_sync = code.account == Account::kSync && code.with_interpreter >= kAllTheWhile;
  if (in_sync || (code.account == Account::kHostCode && code.with_interpreter >= a.limits[Threshold::kMajority]))
    std::erase_if(finding.candidates, [](Cause cause) { return cause != Cause::kCpuOversubscribed; });
  put_first(finding.candidates, Cause::kGilContention);
  if (finding.candidates.size() == 1) {
    finding.candidates.clear();
    finding.cause = Cause::kGilContention;
    if (in_sync) finding.title = "The GPU runs dry while the thread that feeds it waits for the interpreter (GIL)";
  }
  if (code.with_interpreter >= a.limits[Threshold::kChannelShare]) {
    finding.advice = fmt::format("run {} in another process, or in code that lets go of the interpreter", code.place);
  } else {
    finding.advice = fmt::format("see whether {} has that lock; if so, hold it for a shorter time", code.place);
    finding.remedy = Remedy{.fix = "thread_to_process", .title = "Hold the lock of the other thread for less time"};
  }
}

// "; another thread had the interpreter (GIL) in 60 % of them: watch (app.py)"; `on_lock` of the looks at the main
// thread found it asleep at one.
std::string other_thread_words(const Analysis& a, const ThreadCode& code, double on_lock) {
  const double often = a.limits[Threshold::kChannelShare];
  if (code.with_interpreter >= often)
    return fmt::format("; another thread had the interpreter (GIL) in {} of them: {}",
                       human_percent(code.with_interpreter), code.place);
  if (code.share < often || on_lock < often) return "";
  return fmt::format("; in {} of them another thread was at {}, and the main one slept on a lock in {} of the looks",
                     human_percent(code.share), code.place, human_percent(on_lock));
}

// What other threads were seen at in such time; nothing before and after the work.
const ThreadCode* other_thread(const Analysis& a, Account account) {
  if (account == Account::kStartup || account == Account::kTeardown) return nullptr;
  const auto code = std::find_if(a.code.other_threads.begin(), a.code.other_threads.end(),
                                 [&](const ThreadCode& other) { return other.account == account; });
  return code == a.code.other_threads.end() ? nullptr : &*code;
}

// What another thread was at that kept the main one from going on, or may have: it had the interpreter, or the main
// thread slept on a lock meanwhile.
std::string beside(const Analysis& a, Finding& finding) {
  if (a.code.one_python_thread_each && finding.candidates.size() > 2)
    std::erase(finding.candidates, Cause::kGilContention);
  if (mostly_at(a, finding.claims, a.code.feeding)) return "";  // that thread is named already
  const ThreadCode* code = other_thread(a, main_account(finding.claims));
  if (!code) return "";
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (code->place.empty()) return asleep_beside(a, s, *code, finding.claims);
  // One that has the interpreter keeps the main thread waiting even where it has no core to run on, and one that has a
  // lock while it waits for something itself.
  const double majority = a.limits[Threshold::kMajority], often = a.limits[Threshold::kChannelShare];
  const double on_lock = s.waiting_in({WaitChannel::kFutex});
  const bool at_a_lock = on_lock >= majority && code->share >= majority;
  if (s.owner_threads < a.limits[Threshold::kOtherThreads] && code->with_interpreter < majority && !at_a_lock)
    return asleep_beside(a, s, *code, finding.claims);
  if (code->with_interpreter < often && is_of_the_loader(a, code->place)) {
    if (finding.candidates.size() > 2) std::erase(finding.candidates, Cause::kGilContention);
    return "";
  }
  if (finding.cause == Cause::kCpuOversubscribed && code->with_interpreter >= majority) {
    finding.interpreter_at = code->place;
    finding.advice += fmt::format("; {}{}", code->place, kHasTheInterpreter);
  }
  if (at_a_lock && finding.cause && code->with_interpreter < often)
    finding.advice += fmt::format("; see whether {} has that lock meanwhile", code->place);
  std::string text = other_thread_words(a, *code, on_lock);
  if (!text.empty() && !finding.cause) blame_other_thread(a, *code, finding);
  return text;
}

// "at line 41: batch = next(batches)"
std::string at_line(const Analysis& a, const CodeLine& line) {
  const std::string text = a.told.source_text ? a.told.source_text(line) : "";
  return fmt::format("at line {}{}{}", line.line, text.empty() ? "" : ": ", text);
}

// "; most of the first at line 41: batch = next(batches)", and where another line has a good part, too: "; of it 57 %
// at line 41: batch = next(batches), 40 % at line 38: x = volume.float()".
std::string line_words(const Analysis& a, const NamedCode& code, bool one) {
  constexpr std::size_t kNamed = 2;
  const auto& often = code.line.often;
  const std::string_view whose = one ? "it" : "the first";
  if (often.size() < kNamed)
    return code.line.line <= 0 ? "" : fmt::format("; most of {} {}", whose, at_line(a, code.line));
  std::vector<std::string> parts;
  for (const CodeLine::Share& share : std::span(often).first(kNamed))
    parts.push_back(
        fmt::format("{} {}", human_percent(share.of_looks), at_line(a, {.file = code.line.file, .line = share.line})));
  return fmt::format("; of {} {}", whose, join(parts, ", "));
}

// "busy (win.py) was called by rolling_mean (win.py) in 38 % of the looks, by rank_ic (win.py) in 37 %"; "" where one
// caller has nearly all.
std::string callers_sentence(const Analysis& a, const std::string& place) {
  constexpr std::size_t kNamed = 4;
  constexpr double kNearlyAll = 0.85, kLeast = 0.05;
  const auto found = a.code.callers.find(place);
  if (found == a.code.callers.end() || found->second.front().second >= kNearlyAll) return "";
  std::vector<std::string> parts;
  for (const auto& [caller, share] : found->second)
    if (parts.size() < kNamed && share >= kLeast)
      parts.push_back(fmt::format("by {} in {}{}", caller, human_percent(share), parts.empty() ? " of the looks" : ""));
  return parts.size() < 2 ? "" : fmt::format("{} was called {}", place, join(parts, ", "));
}

// Code that wants a core is one thing to change, what takes the cores another: each has a bound of its own. The code's
// is of all that it keeps idle of the one GPU that is used, after the first kernel or before.
void say_what_code_costs(const Analysis& a, const NamedCode& code, Finding& finding) {
  if (finding.cause != Cause::kCpuOversubscribed || main_account(finding.claims) != Account::kHostCode || !finding.gain)
    return;
  finding.advice += fmt::format("; or make {} cheaper; or run it beside the kernels", code.spot());
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (device != finding.claims.front().device && a.ledger.busy(device) > 0) return;
  const auto gone = removal(a, claim(a, [&](std::size_t, const Slice& slice) {
                              return slice.where == code.where && slice.account == Account::kHostCode;
                            }));
  if (!gone || human_factor(*gone) == human_factor(finding.gain->high)) return;
  finding.gain->beside = fmt::format("; {} {}", human_factor(*gone), kWithoutTheCode);
  finding.bound = bound_words(*finding.gain);
}

// The time whose stacks tell of a finding, and the process that these are of.
struct ToldTime {
  Claims claims;
  const char* whose = "its";
  bool of_a_rank = false;  // that others wait for
};

// A wait for others that no stack tells: what they wait for is at the late one, or the busiest.
ToldTime told_by_stacks(const Analysis& a, const IdleParts& parts, const Finding& finding) {
  const Claims own = without(without(finding.claims, parts.beside_checkpoint), parts.beside_validation);
  if (!is_likeliest(finding, Cause::kStraggler)) return {own};
  if (Claims late = common(finding.claims, parts.late.claims); !late.empty())
    return {std::move(late), "the late one's", true};
  if (common(finding.claims, parts.ranks).empty()) return {own};
  return {of_the_busiest(a, own), "the busiest one's", true};
}

constexpr std::size_t kCodeNamed = 3;  // at most in a sentence

std::string first_of(const std::vector<NamedCode>& named, std::string (*words)(const NamedCode&)) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kCodeNamed, named.size()); ++i) text += (i == 0 ? " " : ", ") + words(named[i]);
  return text;
}

// " load (data.py) 40 %, collate (data.py) 20 % of this time (of 30 % no stack tells)"; `unseen` of the time none does.
std::string code_shares(const std::vector<NamedCode>& named, bool of_a_rank, double unseen) {
  constexpr double kMuch = 0.1;
  std::string text = first_of(named, [](const NamedCode& code) { return code.place + " " + share_words(code); });
  text += of_a_rank ? " of this time of its GPU" : " of this time";
  if (std::any_of(named.begin(), named.end(), is_range))
    text += " (kernels ran beside a part of such code, and nothing tells which)";
  if (unseen >= kMuch) text += fmt::format(" (of {} no stack tells)", human_percent(unseen));
  return text;
}

std::string source_words(const ToldTime& told, bool few, bool profiled) {
  if (profiled) return "by the trace:";
  return fmt::format("{} Python stacks{} say:", told.whose, few ? ", a few only," : "");
}

// That it waits for workers is said already, as it is where the title names what they were at.
bool says_its_workers(const Analysis& a, const NamedCode& code, const Finding& finding) {
  if (code.place == info(stacks::Family::kLoaderWait).label) return true;
  const std::vector<NamedCode> workers = workers_at(a, finding.claims).code;
  return !workers.empty() && finding.title.find(workers[0].spot()) != std::string::npos;
}

// The innermost one that has most of the time with all that it calls.
std::optional<CodeHolder> holder_of(const Analysis& a, const std::vector<NamedCode>& named) {
  struct Held {
    double share = 0, beside_kernels = 0;
  };
  std::map<std::string, Held> all;
  double beside_kernels = 0;
  for (const NamedCode& code : named) {
    const auto held = a.code.held_by.find(code.place);
    std::map<std::string, double> by;
    if (held != a.code.held_by.end()) by = held->second;
    by[std::string(function_of(code.place))] = 1;
    for (const auto& [function, share] : by)
      all[function].share += share * code.share, all[function].beside_kernels += share * code.beside_kernels;
    beside_kernels += code.beside_kernels;
  }
  std::optional<CodeHolder> holder;
  for (const auto& [function, held] : all)
    // Of what others have beside kernels, it may be that part which was counted as its own.
    if (held.share - (beside_kernels - held.beside_kernels) >= a.limits[Threshold::kMajority] &&
        (!holder || held.share < holder->share))
      holder = CodeHolder{function, held.share};
  return holder;
}

// What a title says of code goes behind it.
void say_behind(std::string& title, std::string_view code) {
  title += fmt::format("{}{}", title.find(": ") == std::string::npos ? ": " : ", mostly ", code);
}

void say_what_holds_it(const Analysis& a, const std::vector<NamedCode>& named, Finding& finding) {
  finding.holder = holder_of(a, named);
  if (!finding.holder) return;
  say_behind(finding.title, finding.holder->words());
  finding.evidence.insert(finding.evidence.begin() + 1,
                          fmt::format("{} has {} of this time with all that it calls", finding.holder->function,
                                      human_percent(finding.holder->share)));
}

void say_in_the_title(const Analysis& a, const std::vector<NamedCode>& named, bool few, Finding& finding) {
  constexpr double kMuchToo = 0.2;  // of the time: what the title leaves out would be taken for the other's
  if (says_its_workers(a, named[0], finding)) return;
  if (named[0].least < a.limits[Threshold::kMajority]) {
    if (!few) say_what_holds_it(a, named, finding);
    return;
  }
  say_behind(finding.title, named[0].spot());
  finding.code = named[0].where;
  if (!few && named.size() > 1 && named[1].share >= kMuchToo) finding.title += " and " + named[1].spot();
  say_what_code_costs(a, named[0], finding);
}

}  // namespace

void name_the_code(const Analysis& a, const IdleParts& parts, std::set<std::string>& callers_told, Finding& finding) {
  constexpr double kLeast = 0.05;  // of the time: less is an accident of sampling
  const ToldTime told = told_by_stacks(a, parts, finding);
  std::vector<NamedCode> named = code_in(a, told.claims);
  // Whoever waits for the interpreter does so at any line, behind calls that have long come back.
  if (interpreter_taken(a, main_account(finding.claims)))
    for (NamedCode& code : named) code.line = {};
  double unseen = 1;  // of the time
  for (const NamedCode& code : named) unseen -= code.share;
  std::erase_if(named, [](const NamedCode& code) { return code.share < kLeast; });
  if (named.empty() || named[0].place == kNotBegun) return;  // the finding says no more
  const bool profiled = finding.tiers.has("C");
  const bool few = !profiled && length(told.claims) < kSecond;  // shares of a handful of stacks would be accidents
  if (few && told.of_a_rank) return;                            // and that of another process is in the title
  std::string text;
  if (few) {
    text = first_of(named, [](const NamedCode& code) { return code.spot(); });
  } else {
    text = code_shares(named, told.of_a_rank, profiled ? 0 : unseen) + line_words(a, named[0], named.size() == 1);
    if (!told.of_a_rank) text += beside(a, finding);
  }
  finding.evidence.insert(finding.evidence.begin(), source_words(told, few, profiled) + text);
  const std::string callers = few || profiled ? "" : callers_sentence(a, named[0].place);
  if (!callers.empty() && callers_told.insert(callers).second)
    finding.evidence.insert(finding.evidence.begin() + 1, callers);
  say_in_the_title(a, named, few, finding);
  if (!profiled) finding.tiers |= "Y";
}

std::optional<PeerWait> peer_in(const Analysis& a, const Claims& claims, bool told) {
  std::vector<std::pair<Nanos, const PeerWait*>> waits;
  for (const PeerWait& wait : a.peer_waits) {
    if (wait.told != told || wait.peer == kNoSource) continue;
    const Nanos ns = length_of(claims, [&](const ClaimedPiece& piece) {
      return piece.where >= 0 && a.ledger.places[static_cast<std::size_t>(piece.where)] == wait.where &&
             holds(a, wait.process, piece.device);
    });
    if (ns > 0) waits.emplace_back(ns, &wait);
  }
  const auto most = std::max_element(waits.begin(), waits.end(), [](const auto& x, const auto& y) {
    return std::pair(x.first, x.second->at_work) < std::pair(y.first, y.second->at_work);
  });
  if (most == waits.end() || !is_most(a, most->first, length(claims))) return std::nullopt;
  return *most->second;
}

std::string peer_sentence(const Analysis& a, const PeerWait& wait) {
  std::vector<std::size_t> gpus;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (holds(a, wait.peer, device)) gpus.push_back(device);
  std::string text =
      fmt::format("meanwhile {} was {} in {} of the looks at its stacks",
                  process_name(wait.peer_pid, wait.peer_rank, gpu_names(a, gpus)),
                  wait.peer_waits_for_kernels ? "not there yet" : "at work", human_percent(wait.at_work));
  if (wait.peer_at.empty()) return text;
  return text + (wait.peer_waits_for_kernels ? ", mostly waiting for its own kernels in " : ", mostly at ") +
         wait.peer_at;
}

WorkersAt workers_at(const Analysis& a, const Claims& claims) {
  std::map<std::int32_t, double> looks_at;
  std::map<std::int32_t, MainLine> lines;
  double all = 0, at_work = 0;
  const std::vector<WorkerLook>& looks = a.code.workers.looks;
  for (const ClaimedPiece& piece : claims) {
    auto look = std::upper_bound(looks.begin(), looks.end(), std::pair(piece.device, piece.begin),
                                 [](const auto& at, const WorkerLook& x) { return at < std::pair(x.device, x.at); });
    for (; look != looks.end() && look->device == piece.device && look->at <= piece.end; ++look) {
      all += 1;
      if (look->place < 0) continue;
      looks_at[look->place] += 1;
      lines[look->place].add(look->line);
      at_work += 1;
    }
  }
  WorkersAt workers;
  for (const auto& [number, count] : looks_at) {
    const std::string& place = a.code.workers.places[static_cast<std::size_t>(number)];
    workers.code.push_back({.place = place, .line = {"", lines[number].line()}, .share = count / at_work});
  }
  std::stable_sort(workers.code.begin(), workers.code.end(),
                   [](const auto& x, const auto& y) { return x.share > y.share; });
  if (all > 0) workers.at_work = at_work / all;
  return workers;
}

namespace {

// What workers pickle, the training process unpickles on its main thread.
void say_the_pickling(const Analysis& a, const std::vector<NamedCode>& of_workers, Finding& finding) {
  double share = 0;
  for (const NamedCode& code : of_workers)
    if (code.place == "ForkingPickler.dumps (reduction.py)") share += code.share;
  if (share < a.limits[Threshold::kChannelShare]) return;
  finding.evidence.push_back(
      fmt::format("its workers pickle what they hand over for {} of that time, and the training process unpickles it: "
                  "tensors go through shared memory in PyTorch's queues, lists and arrays are pickled whole",
                  human_percent(share)));
  finding.advice += "; hand over tensors, or less";
}

}  // namespace

void name_the_workers_code(const Analysis& a, Finding& finding) {
  constexpr double kLeast = 0.05;
  std::string text;
  const std::vector<NamedCode> code = workers_at(a, finding.claims).code;
  for (std::size_t i = 0; i < std::min(kCodeNamed, code.size()); ++i)
    if (code[i].share >= kLeast)
      text += fmt::format("{} {} {}", i == 0 ? "" : ",", code[i].place, human_percent(code[i].share));
  if (text.empty()) return;
  finding.evidence.insert(finding.evidence.begin(), "what its workers were at then, by their Python stacks:" + text);
  const bool of_main = finding.remedy && finding.remedy->fix == "cheaper_loading";  // it takes over what they made
  if (!of_main && code[0].share >= a.limits[Threshold::kMajority]) finding.title += ": " + code[0].spot();
  say_the_pickling(a, code, finding);
  finding.tiers |= "Y";
}

}  // namespace headroom::diagnose
