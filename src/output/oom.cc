// SPDX-License-Identifier: Apache-2.0
#include "output/oom.h"

#include <algorithm>
#include <array>

#include "base/enum_table.h"
#include "base/human.h"
#include "base/result.h"
#include "base/strings.h"
#include "model/oom_kills.h"

namespace headroom::output {

namespace {

constexpr double kFull = 0.97;  // of a GPU's memory: less than any allocation step is left
constexpr int kKilled = 128 + 9;

// A line is evidence if it holds `first` and, after it, `second` ("" : nothing more); upper and lower case alike.
struct Pattern {
  OomKind kind;
  std::string_view first, second;
};

// The most telling first: a library's own words before the runtime's that it wraps.
constexpr std::array kPatterns{
    Pattern{OomKind::kPyTorch, "torch.cuda.outofmemoryerror", ""},
    Pattern{OomKind::kPyTorch, "torch.outofmemoryerror", ""},
    Pattern{OomKind::kPyTorch, "cuda out of memory. tried to allocate", ""},
    Pattern{OomKind::kPyTorch, "runtimeerror: cuda error: out of memory", ""},
    Pattern{OomKind::kJax, "xlaruntimeerror: resource_exhausted", "out of memory"},
    Pattern{OomKind::kJax, "xlaruntimeerror: resource_exhausted", "failed to allocate"},
    Pattern{OomKind::kJax, "jaxruntimeerror: resource_exhausted", ""},
    Pattern{OomKind::kJax, "resource_exhausted: out of memory", ""},
    Pattern{OomKind::kTensorFlow, "resourceexhaustederror", "oom when allocating tensor"},
    Pattern{OomKind::kTensorFlow, "resource_exhausted: oom when allocating", ""},
    Pattern{OomKind::kTensorFlow, "oom when allocating tensor with shape", ""},
    Pattern{OomKind::kTensorFlow, "failed to allocate", "cuda_error_out_of_memory"},
    Pattern{OomKind::kXgboost, "xgboost", "memory allocation error on worker"},
    Pattern{OomKind::kXgboost, "xgboosterror", "bad_alloc: cudaerrormemoryallocation"},
    Pattern{OomKind::kXgboost, "dmlc", "bad_alloc"},
    Pattern{OomKind::kXgboost, "rmm_bad_alloc", ""},
    Pattern{OomKind::kXgboost, "memory allocation error on worker", ""},
    Pattern{OomKind::kLightgbm, "[lightgbm] [fatal]", "out of memory"},
    Pattern{OomKind::kLightgbm, "[lightgbm] [fatal]", "cl_mem_object_allocation_failure"},
    Pattern{OomKind::kLightgbm, "boost::compute::opencl_error", "memory object allocation failure"},
    Pattern{OomKind::kCublas, "cublas_status_alloc_failed", ""},
    Pattern{OomKind::kCublas, "cudnn_status_alloc_failed", ""},
    Pattern{OomKind::kCuda, "cudaerrormemoryallocation", ""},
    Pattern{OomKind::kCuda, "cuda_error_out_of_memory", ""},
    Pattern{OomKind::kCuda, "cuda error: out of memory", ""},
    Pattern{OomKind::kCuda, "cuda runtime error (2)", "out of memory"},
    Pattern{OomKind::kCuda, "cuda error 2 ", "out of memory"},
    Pattern{OomKind::kCuda, "cuda", "error: out of memory"},
    Pattern{OomKind::kHostKiller, "oom-kill event", ""},
    Pattern{OomKind::kHostKiller, "out of memory: killed process", ""},
    Pattern{OomKind::kHostKiller, "detected 1 oom_kill event", ""},
    Pattern{OomKind::kHostAllocation, "std::bad_alloc", ""},
    Pattern{OomKind::kHostAllocation, "numpy.core._exceptions._arraymemoryerror", ""},
    Pattern{OomKind::kHostAllocation, "arraymemoryerror: unable to allocate", ""},
    Pattern{OomKind::kHostAllocation, "defaultcpuallocator: can't allocate memory", ""},
    Pattern{OomKind::kHostAllocation, "oserror: [errno 12] cannot allocate memory", ""},
    Pattern{OomKind::kCuda, "cuda out of memory", ""},  // of programs that put it in their own words
};
// Python's own: the whole line, with or without words behind a colon.
constexpr std::string_view kMemoryError = "memoryerror";

// Such lines speak of memory without having run out of it: advice in front of the words …
constexpr std::array<std::string_view, 3> kAdvice{"to avoid", "in case of", "if you see"};
// … or that it was handled, anywhere in the line.
constexpr std::array<std::string_view, 4> kHandled{"will retry", "retrying", "reducing batch", "recovered"};

bool matches(std::string_view line, const Pattern& pattern) {
  const std::size_t first = line.find(pattern.first);
  if (first == std::string_view::npos) return false;
  return pattern.second.empty() || line.find(pattern.second, first + pattern.first.size()) != std::string_view::npos;
}

OomKind kind_of(std::string_view line) {
  if (line == kMemoryError || line.starts_with("memoryerror:")) return OomKind::kHostAllocation;
  for (const Pattern& pattern : kPatterns) {
    if (!matches(line, pattern)) continue;
    const std::string_view before = line.substr(0, line.find(pattern.first));
    const auto in = [](std::string_view text) {
      return [text](std::string_view word) { return text.find(word) != std::string_view::npos; };
    };
    if (std::any_of(kAdvice.begin(), kAdvice.end(), in(before))) return OomKind::kNone;
    if (std::any_of(kHandled.begin(), kHandled.end(), in(line))) return OomKind::kNone;
    return pattern.kind;
  }
  return OomKind::kNone;
}

// A line of ours may be long; the evidence need not.
std::string shortened(std::string_view line) {
  constexpr std::size_t kMost = 300;
  return line.size() <= kMost ? std::string(line) : std::string(line.substr(0, kMost)) + "…";
}

// The last line by which a process tells that a loader worker of it is gone; "" where there is none.
std::string_view line_of_gone_worker(std::string_view output) {
  std::string_view last;
  for (const std::string_view line : split(output, '\n'))
    if (gone_loader_worker(line)) last = trim(line);
  return last;
}

struct OomKindInfo {
  OomKind id;
  std::string_view name;
};
constexpr std::array kOomKinds{
    OomKindInfo{OomKind::kNone, "none"},
    OomKindInfo{OomKind::kCuda, "cuda"},
    OomKindInfo{OomKind::kCublas, "cublas"},
    OomKindInfo{OomKind::kPyTorch, "pytorch"},
    OomKindInfo{OomKind::kTensorFlow, "tensorflow"},
    OomKindInfo{OomKind::kJax, "jax"},
    OomKindInfo{OomKind::kXgboost, "xgboost"},
    OomKindInfo{OomKind::kLightgbm, "lightgbm"},
    OomKindInfo{OomKind::kHostKiller, "host_oom_killer"},
    OomKindInfo{OomKind::kHostAllocation, "host_allocation"},
    OomKindInfo{OomKind::kFullGpu, "full_gpu"},
};
static_assert(in_order_of_ids(kOomKinds));

}  // namespace

std::string_view oom_kind_name(OomKind kind) { return kOomKinds[static_cast<std::size_t>(kind)].name; }

bool is_host(OomKind kind) { return kind == OomKind::kHostKiller || kind == OomKind::kHostAllocation; }

bool says_gpu_out_of_memory(std::string_view line) {
  // Lines come by the million, and each pattern costs a search.
  const auto has = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
  if (!has("emory") && !has("EMORY") && !has("ALLOC") && !has("alloc")) return false;
  const OomKind kind = kind_of(lower(trim(line)));
  return kind != OomKind::kNone && !is_host(kind);
}

OomVerdict recognise_oom(const OomEvidence& evidence) {
  if (evidence.exit_code == 0) return {};
  const char* const where = evidence.oom_kills_of_machine ? "on this machine" : "in its cgroup";
  if (evidence.exit_code == kKilled && evidence.cgroup_oom_kills > 0)
    return {OomKind::kHostKiller, fmt::format("killed, and the kernel counted {} {} meanwhile",
                                              count_of(evidence.cgroup_oom_kills, "OOM kill"), where)};
  OomVerdict best;
  for (const std::string_view raw : split(evidence.output_tail, '\n')) {
    const std::string_view line = trim(raw);
    const OomKind kind = kind_of(lower(line));
    if (kind == OomKind::kNone) continue;
    // A library's words say more than the runtime's beneath them, and a GPU's more than the host's.
    if (best.kind == OomKind::kNone || best.kind == OomKind::kCuda || (is_host(best.kind) && !is_host(kind)))
      best = {kind, shortened(line)};
  }
  if (best.kind != OomKind::kNone) return best;
  if (const std::string_view line = line_of_gone_worker(evidence.output_tail);
      evidence.oom_kill_meanwhile && !line.empty())
    return {OomKind::kHostKiller,
            fmt::format("{}; the kernel counted an OOM kill {} meanwhile", shortened(line), where)};
  if (evidence.cgroup_oom_kills > 0)
    return {OomKind::kHostKiller,
            fmt::format("it failed with status {}, and the kernel counted {} {}", evidence.exit_code,
                        count_of(evidence.cgroup_oom_kills, "OOM kill"), where)};
  const auto& peak = evidence.peak_gpu_used_bytes;
  const auto& total = evidence.gpu_memory_bytes;
  // A signal of a person or of a scheduler is no allocation that failed.
  const bool stopped = evidence.exit_code == kKilled || evidence.exit_code == 128 + 15 || evidence.exit_code == 128 + 2;
  if (!stopped && peak && total && *total > 0 && static_cast<double>(*peak) >= kFull * static_cast<double>(*total))
    return {OomKind::kFullGpu, fmt::format("it failed with status {} while {} of the GPU's {} were used",
                                           evidence.exit_code, human_bytes(*peak), human_bytes(*total))};
  return {};
}

}  // namespace headroom::output
