// SPDX-License-Identifier: Apache-2.0
// What a profiler saw: when which kernel ran is exact, and so is what the thread was at whose launch came next.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/median.h"
#include "base/strings.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/trace_waits.h"
#include "diagnose/words.h"
#include "stacks/families.h"

namespace headroom::diagnose {

bool may_be_no_python(const Analysis& a) { return a.meta.extra.contains("python"); }

std::string fewer_launches(const Analysis& a) {
  return may_be_no_python(a) ? "fewer and larger kernels: more work in each launch, fused kernels, CUDA graphs"
                             : "fewer and larger kernels: a larger batch, fused operators (torch.compile), CUDA graphs";
}

Nanos in_short_waits(const Claims& claims, Nanos longest) {
  Nanos sum = 0, begin = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool goes_on = i > 0 && claims[i - 1].device == claims[i].device && claims[i - 1].end >= claims[i].begin;
    if (!goes_on) begin = claims[i].begin;
    const bool ends =
        i + 1 == claims.size() || claims[i + 1].device != claims[i].device || claims[i + 1].begin > claims[i].end;
    if (ends && claims[i].end - begin <= longest) sum += claims[i].end - begin;
  }
  return sum;
}

Finding trace_finding(Claims claims) {
  Finding finding;
  finding.claims = std::move(claims);
  finding.tiers = "C";
  finding.confidence = Confidence::kHigh;
  finding.would_overturn = kOtherSteps;
  return finding;
}

namespace {

struct Wait {
  Account account;
  std::string_view title, advice, condition;
};
constexpr std::array kWaits{
    Wait{Account::kInput, "The GPU waits for the data loader", "more loader workers, pinned memory, or cheaper samples",
         "if the GPU did not wait for loading at all"},
    Wait{Account::kHostCode, "The GPU waits for operators and CUDA calls on the CPU",
         "make what comes before the launch cheaper, or launch further ahead of the GPU",
         "if launches never came late"},
    Wait{Account::kTransfer, "The GPU copies, and no kernel runs meanwhile",
         "copy from pinned memory on a stream of its own (pin_memory=True, non_blocking=True)",
         "if copies overlapped with the kernels"},
    Wait{Account::kSync, "The GPU runs dry while the job synchronises with it",
         "synchronise once in many steps: it empties the queue of kernels each time",
         "if the queue of kernels never ran empty"},
};

// Before the first kernel there is no step yet whose launches could come late.
Claims before_first_kernel(const Analysis& a, const Claims& claims) {
  Claims lead;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto& slices = a.devices[device].slices;
    const auto first = std::find_if(slices.begin(), slices.end(), [](const Slice& s) { return is_busy(s.account); });
    if (first != slices.end() && first->begin > a.window.begin)
      lead.push_back({device, a.window.begin, first->begin, Account::kUnexplained, -1});
  }
  return common(claims, lead);
}

// "79 kernels in this time of the GPU's, 134 us long on average"
std::optional<std::pair<std::int64_t, double>> kernels_of(const Analysis& a) {
  std::int64_t kernels = 0;
  Nanos time = 0;
  for (const GpuAnalysis& gpu : a.gpus)
    if (gpu.profile) kernels += gpu.profile->kernels, time += gpu.profile->kernel_time;
  if (kernels == 0) return std::nullopt;
  return std::pair(kernels, seconds(time) / static_cast<double>(kernels));
}

std::string kernels_sentence(const std::pair<std::int64_t, double>& kernels) {
  return fmt::format("{} kernels, {} long on average", human_count(kernels.first),
                     human_duration(static_cast<Nanos>(kernels.second * 1e9)));
}

// Whether the thread that launches loads the data itself, or waits for workers: PyTorch's name of its loader tells, and
// Python functions.
struct LoaderShares {
  double itself = 0, workers = 0, tensorflow = 0;
};

LoaderShares loader_shares(const Analysis& a, const Finding& finding) {
  LoaderShares shares;
  for (const NamedCode& code : code_in(a, finding.claims)) {
    const auto has = [&](std::string_view part) { return code.place.find(part) != std::string::npos; };
    const bool by_tensorflow =
        has("IteratorGetNext") || code.place.starts_with("Iterator::") || code.place.starts_with("OptionalGetNext");
    const bool by_pytorch = code.place.starts_with("enumerate(DataLoader)");
    if (by_tensorflow)
      shares.tensorflow += code.share;
    else if (has("_MultiProcessing") || code.place == info(stacks::Family::kLoaderWait).label)
      shares.workers += code.share;
    else if (!by_pytorch || has("_SingleProcess"))
      shares.itself += code.share;
  }
  for (const auto& [name, ns] : by_named_phase(a, finding.claims)) {  // PyTorch's name is an annotation, too
    const double share = as_share(ns, finding.cost());
    if (name.find("enumerate(DataLoader)#_MultiProcessing") != std::string::npos)
      shares.workers = std::max(shares.workers, share);
    if (name.find("enumerate(DataLoader)#_SingleProcess") != std::string::npos)
      shares.itself = std::max(shares.itself, share);
  }
  return shares;
}

void name_loader(const Analysis& a, Finding& finding) {
  const auto [itself, workers, tensorflow] = loader_shares(a, finding);
  if (tensorflow >= a.limits[Threshold::kMajority]) {
    finding.candidates = {Cause::kInputTooFewWorkers, Cause::kSlowStorage};
    finding.title = "The GPU waits for tf.data's next batch";
    finding.advice =
        "map(…, num_parallel_calls=tf.data.AUTOTUNE), prefetch(tf.data.AUTOTUNE), cache(), or cheaper samples";
  } else if (itself >= a.limits[Threshold::kMajority]) {
    finding.cause = Cause::kInputInMainProcess;
    finding.title = "The GPU waits while the training process loads its data itself";
    finding.advice = a.code.loader_traced
                         ? "num_workers=1 and more: let processes of the loader prepare batches while kernels run"
                         : "prepare the next batch while kernels run: in the workers of a DataLoader, of which this "
                           "trace shows none, or in a process of its own";
  } else if (workers >= a.limits[Threshold::kMajority]) {
    finding.candidates = {Cause::kInputTooFewWorkers, Cause::kSlowStorage};
  } else {
    finding.candidates = {Cause::kInputTooFewWorkers, Cause::kInputInMainProcess, Cause::kSlowStorage};
  }
}

// Whether most of it is in what pins memory of the host.
bool pins_memory(const Analysis& a, const Finding& finding) {
  constexpr std::array<std::string_view, 4> kCalls{"pin_memory", "HostAlloc", "MallocHost", "HostRegister"};
  double share = 0;
  for (const NamedCode& code : code_in(a, finding.claims))
    if (std::any_of(kCalls.begin(), kCalls.end(), [&](auto call) { return code.place.find(call) != code.place.npos; }))
      share += code.share;
  return share >= a.limits[Threshold::kMajority];
}

// One call or operator that took most of the time at once: a library that is loaded, code that is compiled.
bool name_one_long_call(const Analysis& a, Finding& finding) {
  constexpr Nanos kShort = 20;  // of a time a twentieth: the kernels that it launched meanwhile
  Nanos length = 0, from = 0;   // of the longest
  const ClaimedPiece* last = nullptr;
  for (Nanos begin = 0; const ClaimedPiece& piece : finding.claims) {
    const bool goes_on = last && last->device == piece.device && last->where == piece.where &&
                         kShort * (piece.begin - last->end) <= piece.end - begin;
    if (!goes_on) begin = piece.begin;
    if (piece.end - begin > length) length = piece.end - begin, from = begin;
    last = &piece;
  }
  if (3 * length < 2 * finding.cost()) return false;
  finding.title = "The GPU waits once for a long call or operator on the CPU";
  finding.evidence.push_back(fmt::format("{} of it is one time, at {}", human_duration(length), a.when(from)));
  if (pins_memory(a, finding)) {
    finding.title = "The GPU waits once while memory of the host is pinned";
    finding.cause = Cause::kHostGraphBuilding;
    finding.advice =
        "pin one buffer before the first step and copy each batch into it, or let the loader do so "
        "(pin_memory=True)";
    return true;
  }
  finding.candidates = {Cause::kCompileWarmup, Cause::kStartupLoad};
  finding.advice =
      "what is used for the first time is loaded or compiled then: profile later steps (torch.profiler.schedule)";
  return true;
}

// Operators that take longer on the CPU than their kernels on the GPU, again and again, and no longer than the way of a
// launch through an eager framework takes. A few long waits are none of that, however many kernels share them.
bool launches_slowly(const Analysis& a, const Finding& finding, const std::pair<std::int64_t, double>& kernels) {
  constexpr Nanos kLongestWay = 200 * kMicrosecond;
  constexpr std::int64_t kEnough = 10;
  const double each = seconds(finding.cost()) / static_cast<double>(kernels.first);
  return kernels.first >= kEnough && each > kernels.second && each < seconds(kLongestWay) &&
         is_most(a, in_short_waits(finding.claims, 2 * kLongestWay), finding.cost());
}

// Most of the time is short waits in the calls themselves that launch: each takes longer than what it launches.
bool in_launches(const Analysis& a, const Finding& finding) {
  constexpr Nanos kLongest = 100 * kMicrosecond;  // of a launch, under a profiler
  double share = 0;
  for (const NamedCode& code : code_in(a, finding.claims)) share += launches_work(code.place) ? code.share : 0;
  const double majority = a.limits[Threshold::kMajority];
  return share >= majority && static_cast<double>(in_short_waits(finding.claims, kLongest)) >=
                                  majority * static_cast<double>(finding.cost());
}

// Of a launch: 4 to 6 us, in seconds.
constexpr double kLaunch = 5e-6;

// Whether it passes once, and no step has it again.
bool name_causes(const Analysis& a, const Wait& wait, Finding& finding) {
  switch (wait.account) {
    case Account::kInput:
      name_loader(a, finding);
      return false;
    case Account::kTransfer:
      name_copies(a, finding);
      return false;
    case Account::kSync:
      finding.cause = Cause::kSyncPoints;
      return false;
    default:
      break;
  }
  const auto kernels = kernels_of(a);
  if (kernels) finding.evidence.push_back(kernels_sentence(*kernels));
  if (name_one_long_call(a, finding)) return true;
  if (kernels && kernels->second < a.limits[Threshold::kShortKernel]) {
    finding.cause = Cause::kLaunchBound;
    finding.title = kernels->second < kLaunch
                        ? "The GPU waits for its launches: kernels are shorter than it takes to launch one"
                        : "The GPU waits for its launches: kernels are about as short as the launch of one";
    finding.advice = fewer_launches(a);
  } else if (kernels && in_launches(a, finding)) {
    finding.cause = Cause::kLaunchBound;
    finding.title = "The GPU waits for its launches: the thread is still in the calls that make them";
    finding.advice = fewer_launches(a);
  } else if (kernels && launches_slowly(a, finding, *kernels)) {
    finding.cause = Cause::kLaunchBound;
    finding.title = "The GPU waits for its launches: operators take longer on the CPU than their kernels on the GPU";
    finding.advice = fewer_launches(a);
  } else {
    finding.candidates = {Cause::kHostGraphBuilding, Cause::kInputInMainProcess};
    if (kernels) finding.told_apart_from = {"launch-bound kernels: they are longer than a launch takes"};
  }
  return false;
}

}  // namespace

void say_rounds(const Analysis& a, Finding& finding) {
  constexpr std::size_t kFewest = 3;
  constexpr Nanos kShort = 10;     // of the longest a tenth
  constexpr double kMostly = 0.9;  // of the time
  std::vector<Window> times = times_of(finding.claims);
  Nanos longest = 0, sum = 0;
  for (const Window& time : times) longest = std::max(longest, time.length());
  std::erase_if(times, [&](const Window& time) { return kShort * time.length() < longest; });
  for (const Window& time : times) sum += time.length();
  if (a.devices.size() > 1 || times.size() < kFewest ||
      static_cast<double>(sum) < kMostly * static_cast<double>(finding.cost()))
    return;
  std::vector<double> lengths;
  for (const Window& time : times) lengths.push_back(static_cast<double>(time.length()));
  const auto period = pace_of(a, times);
  finding.evidence.push_back(fmt::format("{} times, as a rule {} at a time{}",
                                         human_count(static_cast<std::int64_t>(times.size())),
                                         human_duration(static_cast<Nanos>(median(std::move(lengths)))),
                                         period ? ", every " + human_duration(*period) : ""));
}

namespace {

// Idle time in calls that take device memory from the driver or give it back, of an allocator that does so all the
// while: at the start each does, and the second half of the trace has to be as bad on its own. Else nothing.
Claims allocating(const Analysis& a, const Claims& claims) {
  Claims in_calls = claims;
  std::erase_if(in_calls, [&](const ClaimedPiece& piece) {
    return piece.where < 0 || !allocates(a.ledger.places[static_cast<std::size_t>(piece.where)]);
  });
  const Nanos middle = a.window.begin + a.window.length() / 2;
  Nanos late = 0;
  for (const ClaimedPiece& piece : in_calls) late += std::max<Nanos>(0, piece.end - std::max(piece.begin, middle));
  return a.material(2 * late) ? in_calls : Claims{};
}

Finding allocator(const Analysis& a, Claims claims) {
  Finding finding = trace_finding(std::move(claims));
  finding.cause = Cause::kAllocatorChurn;
  finding.confidence = Confidence::kMedium;
  finding.title = "The GPU waits while device memory is allocated and freed";
  finding.told_apart_from = {
      "the first steps, where an allocator takes its memory: it goes on to the end of the trace"};
  finding.advice = may_be_no_python(a)
                       ? "allocate once, before the loop, and keep it; or take memory from a pool (cudaMallocAsync)"
                       : "no torch.cuda.empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; "
                         "batches of one shape";
  gains_by_removal(a, finding, "if no memory was allocated or freed then");
  return finding;
}

// Time in Python functions that run no operator and no call, where a trace has these functions (with_stack=True).
bool in_python(const Slice& slice) { return slice.account == Account::kHostCode && slice.tiers.has("Y"); }

// Functions that measure what was learnt, by the words that their names begin or go on with: no input is loaded there.
bool measures(const Analysis& a, const Finding& finding) {
  constexpr std::array<std::string_view, 7> kWords{"metric", "eval",       "score",    "accuracy",
                                                   "auc",    "validation", "confusion"};
  double share = 0;
  for (const NamedCode& code : code_in(a, finding.claims)) {
    const std::string place = lower(code.place);
    const auto has = [&](std::string_view word) {
      for (auto at = place.find(word); at != std::string::npos; at = place.find(word, at + 1))
        if (at == 0 || place[at - 1] < 'a' || place[at - 1] > 'z') return true;  // "retrieval" has another one
      return false;
    };
    if (std::any_of(kWords.begin(), kWords.end(), has)) share += code.share;
  }
  return share >= a.limits[Threshold::kMajority];
}

Finding python_code(const Analysis& a, Claims claims) {
  Finding finding = trace_finding(std::move(claims));
  finding.confidence = Confidence::kMedium;
  finding.title = "The GPU waits for Python code that runs no operator and no CUDA call";
  finding.evidence = {"tracing each call of a function slows Python: without that it takes less"};
  say_rounds(a, finding);
  const auto kernels = kernels_of(a);
  if (kernels) finding.evidence.push_back(kernels_sentence(*kernels));
  if (kernels && launches_slowly(a, finding, *kernels)) {
    finding.candidates = {Cause::kLaunchBound, Cause::kHostGraphBuilding};
    finding.advice = fewer_launches(a);
  } else if (share_in(a, finding.claims, stacks::Family::kLogging) >= a.limits[Threshold::kMajority]) {
    finding.cause = Cause::kLoggingUpload;
    finding.advice = "log less often, or hand it to a thread or a process of its own, and go on";
  } else if (measures(a, finding)) {
    finding.candidates = {Cause::kHostGraphBuilding};
    finding.advice = "measure less often, on the GPU (torchmetrics), or in a process of its own while kernels run";
  } else {
    finding.candidates = {Cause::kHostGraphBuilding, Cause::kInputInMainProcess};
    finding.advice = "make it cheaper, or let it run while kernels do: in the loader's workers, or once for many steps";
  }
  gains_by_removal(a, finding, "if that overlapped with the kernels");
  hides_behind_kernels(a, finding, "if it took no time");
  return finding;
}

Finding waits_at_the_start(const Analysis& a, Claims lead) {
  Finding finding = trace_finding(std::move(lead));
  finding.title = "Before the first kernel of the trace the GPU waits for the host";
  finding.candidates = {Cause::kStartupLoad, Cause::kCompileWarmup, Cause::kHostGraphBuilding};
  finding.advice = "profile later steps to see how the job goes on (torch.profiler.schedule)";
  gains_once(a, finding);
  return finding;
}

Finding wait_finding(const Analysis& a, const Wait& wait, Claims claims) {
  Finding finding = trace_finding(std::move(claims));
  finding.title = wait.title;
  finding.advice = wait.advice;
  const bool once = name_causes(a, wait, finding);
  if (wait.account == Account::kInput) say_rounds(a, finding);
  if (once)
    gains_once(a, finding);
  else
    gains_by_removal(a, finding, std::string(wait.condition));
  if (wait.account == Account::kTransfer) gains_of_copies(a, finding);
  return finding;
}

}  // namespace

std::vector<Finding> profiled_waits(const Analysis& a) {
  if (!is_profiled(a)) return {};
  std::vector<Finding> findings = unexplained_waits(a);
  const UnevenTime uneven = uneven_time(a);  // GPUs that take turns have a finding of their own
  if (Claims python = claim(a, [](std::size_t, const Slice& s) { return s.tiers.has("C") && in_python(s); });
      a.material(length(python)))
    findings.push_back(python_code(a, std::move(python)));
  for (const Wait& wait : kWaits) {
    Claims claims = claim(a, [&](std::size_t, const Slice& slice) {
      return slice.tiers.has("C") && slice.account == wait.account && !in_python(slice);
    });
    if (wait.account == Account::kSync && uneven.in_turn) claims = without(claims, uneven.claims);
    Claims lead = wait.account == Account::kHostCode ? before_first_kernel(a, claims) : Claims{};
    if (a.material(length(lead))) {
      claims = without(claims, lead);
      findings.push_back(waits_at_the_start(a, std::move(lead)));
    }
    if (Claims calls = allocating(a, claims); wait.account == Account::kHostCode && a.material(length(calls))) {
      claims = without(claims, calls);
      findings.push_back(allocator(a, std::move(calls)));
    }
    if (a.material(length(claims))) findings.push_back(wait_finding(a, wait, std::move(claims)));
  }
  return findings;
}

void name_the_trace(const Analysis& a, Finding& finding) {
  if (!is_profiled(a) || !(finding.tiers.has("N") || finding.tiers.has("P"))) return;
  finding.tiers = finding.tiers.has("X") ? "XC" : "C";
  if (finding.cause != Cause::kRecordingLosses) finding.would_overturn = kOtherSteps;
}

std::vector<Finding> exposed_communication(const Analysis& a) {
  Finding finding;
  Nanos kernels = 0;
  for (std::size_t device = 0; device < a.gpus.size(); ++device) {
    if (!a.gpus[device].profile) continue;
    kernels += a.gpus[device].profile->kernel_time;
    for (const auto& [begin, end] : a.gpus[device].profile->exposed)
      finding.claims.push_back({device, begin, end, Account::kUseful, -1});
  }
  if (!a.material(finding.cost())) return {};
  finding.cause = Cause::kExposedCommunication;
  finding.tiers = "C";
  finding.confidence = Confidence::kHigh;
  finding.title = "Communication kernels run alone: nothing is computed meanwhile";
  finding.evidence = {fmt::format("{} of the time of all kernels; they also wait in it for the slowest rank",
                                  human_percent(static_cast<double>(finding.cost()) / static_cast<double>(kernels)))};
  finding.advice = "overlap it with the backward pass (bucket sizes of DDP), exchange less often, or less";
  gains_by_removal(a, finding, "if all communication overlapped with other kernels");
  hides_behind_kernels(a, finding, "if there were none");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
