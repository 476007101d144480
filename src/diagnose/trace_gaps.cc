// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/named_code.h"
#include "diagnose/trace_waits.h"

namespace headroom::diagnose {

namespace {

// From a launch to the kernel's beginning on a GPU that is idle: 4 to 10 us, and twice that under a profiler.
constexpr Nanos kLongestLatency = 20 * kMicrosecond;

Nanos median_length(const Claims& claims) {
  std::vector<Nanos> lengths;
  for (const ClaimedPiece& piece : claims) lengths.push_back(piece.end - piece.begin);
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return lengths.empty() ? 0 : *middle;
}

// Between one operator or call and the next: what reads or writes a file, or waits for another process, takes longer.
constexpr Nanos kShortPause = 50 * kMicrosecond;

constexpr std::string_view kGpuWaits = "The GPU waits";

// What the trace tells of the host meanwhile: whether it has operators and CUDA calls at all.
bool has_told(const Analysis& a, const char* what) { return !a.meta.extra.contains(what); }
bool never_read(const Analysis& a) { return !has_told(a, "calls") && a.meta.extra.at("calls") == "not read"; }

Finding before_the_ranges(const Analysis& a, Claims lead) {
  Finding finding = trace_finding(std::move(lead));
  finding.confidence = Confidence::kMedium;
  finding.title = "Before the first marked range of the trace the GPU waits for the host";
  finding.candidates = {Cause::kStartupLoad, Cause::kCompileWarmup, Cause::kHostGraphBuilding};
  finding.advice = "where it is set-up, it passes once: see in the marked ranges how the job goes on";
  gains_once(a, finding);
  return finding;
}

std::string title_between(const Analysis& a, const Claims& claims) {
  const bool operators = has_told(a, "operators"), calls = has_told(a, "calls"), unread = never_read(a);
  std::string title = operators && calls
                          ? "The GPU waits while the thread that launches runs no operator and no CUDA call"
                      : calls     ? "The GPU waits while the thread that launches makes no CUDA call"
                      : operators ? "The GPU waits while no operator runs"
                      : unread    ? "The GPU waits, and what the host did meanwhile is not read from this trace"
                                  : "The GPU waits, and what the host did meanwhile is not told by this trace";
  const std::string phase = phase_of_most(a, claims);
  if (phase.empty()) return title;
  return unread ? fmt::format("The GPU waits while the host is in {}", phase)
                : title.replace(0, kGpuWaits.size(), fmt::format("The GPU waits in {}", phase));
}

// The thread that launches next is in no operator and no call.
Finding between_launches(const Analysis& a, Claims between) {
  const bool operators = has_told(a, "operators"), calls = has_told(a, "calls");
  Finding finding = trace_finding(std::move(between));
  finding.confidence = Confidence::kLow;
  finding.title = title_between(a, finding.claims);
  if (!operators && calls) finding.evidence = {"the trace has no operators: whether one ran is not known"};
  if (operators && !calls) finding.evidence = {"the trace has no CUDA calls: whether one ran is not known"};
  finding.candidates = {Cause::kHostGraphBuilding, Cause::kInputInMainProcess, Cause::kInputTooFewWorkers,
                        Cause::kLoggingUpload, Cause::kGilContention};
  finding.advice = "see what Python does there: headroom run -- CMD reads its stacks";
  if (!operators && !never_read(a) && a.meta.origin == "import:kineto")
    finding.advice =
        "profile the CPU, too: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; or headroom run -- CMD, "
        "which reads the stacks of Python";
  if (may_be_no_python(a)) {
    finding.candidates = {Cause::kHostGraphBuilding, Cause::kSlowStorage, Cause::kLoggingUpload};
    finding.advice =
        "see what the CPU does there: NVTX ranges around the parts of the program, or its samples (nsys profile "
        "--sample=process-tree --cpuctxsw=process-tree)";
  }
  if (calls && in_short_waits(finding.claims, kShortPause) >= finding.cost() / 2) {
    finding.candidates = {Cause::kHostGraphBuilding, Cause::kLaunchBound};
    finding.evidence.push_back(
        fmt::format("as a rule {} at a time, from one call to the next: nothing is loaded or "
                    "written that quickly",
                    human_duration(median_length(finding.claims))));
    finding.advice = may_be_no_python(a)
                         ? "less on the CPU between the kernels: CUDA graphs, fewer and larger kernels"
                         : "less Python between the kernels: torch.compile, CUDA graphs, a larger batch";
  }
  gains_by_removal(a, finding, "if that overlapped with the kernels");
  hides_behind_kernels(a, finding, "if it took no time");
  return finding;
}

// What was launched has not begun.
Finding not_begun(const Analysis& a, Claims begun) {
  Finding finding = trace_finding(std::move(begun));
  finding.confidence = Confidence::kLow;
  if (const Nanos usual = median_length(finding.claims); usual <= kLongestLatency) {
    finding.title = "Kernels begin a little after their launches, each of them";
    finding.candidates = {Cause::kLaunchBound};
    finding.evidence = {fmt::format(
        "as a rule {} from a launch to its kernel: an idle GPU takes that long to begin one", human_duration(usual))};
    finding.advice = fewer_launches(a);
  } else {
    finding.title = "Work was launched, and the GPU had not begun it";
    finding.candidates = {Cause::kSyncPoints, Cause::kExposedCommunication};
    finding.evidence = {
        "it waited for an event, another stream or another GPU, or what it waited for is not in the trace"};
    finding.advice = "see in the trace which events its streams wait for";
  }
  gains_by_removal(a, finding, "if launched work began at once");
  return finding;
}

}  // namespace

std::vector<Finding> unexplained_waits(const Analysis& a) {
  std::vector<Finding> findings;
  const Claims all = claim(a, [](std::size_t, const Slice& slice) {
    return slice.tiers.has("C") && slice.account == Account::kUnexplained;
  });
  Claims between = all, begun = all;
  std::erase_if(between, [](const ClaimedPiece& piece) { return piece.where >= 0; });
  std::erase_if(begun, [](const ClaimedPiece& piece) { return piece.where < 0; });
  if (Claims lead = before_first_range(a, between); a.material(length(lead))) {
    between = without(between, lead);
    findings.push_back(before_the_ranges(a, std::move(lead)));
  }
  if (a.material(length(between))) findings.push_back(between_launches(a, std::move(between)));
  if (a.material(length(begun))) findings.push_back(not_begun(a, std::move(begun)));
  return findings;
}

}  // namespace headroom::diagnose
