// SPDX-License-Identifier: Apache-2.0
#include "compare/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "compare/parameters.h"
#include "model/precision_names.h"

namespace headroom::compare {

namespace {

// PyTorch asks for memory in segments of 2 and 20 MiB (c10/cuda/CUDACachingAllocator), and equal runs may differ by a
// few of them: three of the large ones are told from none, and of much memory a twentieth.
constexpr double kDiffers = 0.05, kDiffersBytes = 64 * 1048576.0;
bool memory_differs(double a, double b) {
  return std::abs(a - b) > kDiffersBytes && std::abs(a - b) > kDiffers * std::max(a, b);
}

// clang-format off
constexpr std::array<std::string_view, 12> kSettings{
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_MODULE_LOADING", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR",
    "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE"};
// clang-format on

std::string bytes_words(double value) { return human_bytes(static_cast<std::int64_t>(value)); }

bool is_precision(std::string_view name) {
  return std::find(kPrecisionNames.begin(), kPrecisionNames.end(), name) != kPrecisionNames.end() ||
         name == "amp_dtype" || name == "torch_dtype";
}

struct Held {
  std::string of;  // "GPU 0"; "": each side's own
  double a = 0, b = 0;
};

// The GPU on which the figure differs most; where the two had none in common, that which held most on either side.
std::optional<Held> held(const std::vector<ComparedFigure>& figures, std::string_view name) {
  std::optional<Held> most;
  std::optional<double> a, b;
  for (const ComparedFigure& figure : figures) {
    if (figure.name != name) continue;
    if (figure.a) a = std::max(a.value_or(0), *figure.a);
    if (figure.b) b = std::max(b.value_or(0), *figure.b);
    if (!figure.a || !figure.b) continue;
    const auto rank = [](double of_a, double of_b) {
      return std::pair(memory_differs(of_a, of_b), std::abs(of_a - of_b));
    };
    if (!most || rank(*figure.a, *figure.b) > rank(most->a, most->b)) most = Held{figure.of, *figure.a, *figure.b};
  }
  if (!most && a && b) most = Held{"", *a, *b};
  return most;
}

std::string held_words(const Held& held) {
  return fmt::format("{} in A, {} in B{}", bytes_words(held.a), bytes_words(held.b),
                     held.of.empty() ? ", on the GPU of each that held most" : fmt::format(", on {}", held.of));
}

class MemoryFacts {
 public:
  MemoryFacts(const Side& a, const Side& b) : a_(a), b_(b) {}
  void say(MemoryFact fact, std::string text) { list_.push_back({fact, std::move(text)}); }
  void gpus();
  void tasks();
  void holders();
  void parameters(const std::vector<ComparedParameter>& parameters);
  void not_told(bool other_parameters);
  std::vector<ComparedMemory> list_;

 private:
  void named(MemoryFact fact, const ComparedParameter& parameter) {
    const auto value = [](const std::string& of) { return of.empty() ? std::string("not set") : of; };
    say(fact, fmt::format("{} differs, too: {} in A, {} in B", parameter.name, value(parameter.a), value(parameter.b)));
  }
  const Side &a_, &b_;
};

void MemoryFacts::gpus() {
  const auto &a = a_.hardware.gpus, &b = b_.hardware.gpus;
  if (a.empty() || b.empty()) return;
  const std::set<std::string> models_a(a.begin(), a.end()), models_b(b.begin(), b.end());
  if (models_a != models_b)
    say(MemoryFact::kGpu,
        fmt::format("the model differs, too: {} in A, {} in B", some_of(models_a), some_of(models_b)));
  else if (a.size() != b.size())
    say(MemoryFact::kGpu, fmt::format("their number differs, too: {} in A, {} in B", a.size(), b.size()));
}

void MemoryFacts::tasks() {
  std::set<std::string> a, b, only_a, only_b;
  for (const Sample& run : a_.samples) a.insert(run.task);
  for (const Sample& run : b_.samples) b.insert(run.task);
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(only_a, only_a.end()));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::inserter(only_b, only_b.end()));
  only_a.erase(""), only_b.erase("");  // of an unknown program
  std::vector<std::string> words;
  if (!only_a.empty()) words.push_back(fmt::format("only A ran {}", some_of(only_a)));
  if (!only_b.empty()) words.push_back(fmt::format("only B ran {}", some_of(only_b)));
  if (!words.empty()) say(MemoryFact::kTasks, join(words, "; "));
  words.clear();
  for (const auto& [name, side] : {std::pair("A", &a_), std::pair("B", &b_)}) {
    const auto unseen =
        std::count_if(side->samples.begin(), side->samples.end(), [](const Sample& run) { return run.unseen; });
    if (unseen > 0)
      words.push_back(fmt::format("{} of {}'s {}", human_count(unseen), name, count_of(side->samples.size(), "run")));
  }
  if (!words.empty())
    say(MemoryFact::kUnseenTasks,
        fmt::format("{} were not seen on their GPU: where they were shorter than the time between two readings, what "
                    "they held may be missing here",
                    join(words, " and ")));
}

// Processes of the job, and of others.
void MemoryFacts::holders() {
  if (a_.processes && b_.processes && *a_.processes != *b_.processes)
    say(MemoryFact::kProcesses,
        fmt::format("how many of the job's processes the driver listed on a GPU at once differs, too: {} in A, {} in B",
                    *a_.processes, *b_.processes));
  if (!a_.others_bytes || !b_.others_bytes || !memory_differs(*a_.others_bytes, *b_.others_bytes)) return;
  const auto words = [](double held) { return held > 0 ? bytes_words(held) : std::string("nothing"); };
  say(MemoryFact::kOthers, fmt::format("what the largest compute process of others held differs, too: {} in A, {} in B",
                                       words(*a_.others_bytes), words(*b_.others_bytes)));
}

void MemoryFacts::parameters(const std::vector<ComparedParameter>& parameters) {
  for (const ComparedParameter& parameter : parameters) {
    const std::string name = plain_name(parameter.name);
    const std::string_view variable = std::string_view(parameter.name).substr(parameter.name.starts_with('$') ? 1 : 0);
    if (std::find(kSettings.begin(), kSettings.end(), variable) != kSettings.end())
      named(MemoryFact::kSettings, parameter);
    else if (is_batch_size(name))
      named(MemoryFact::kBatchSize, parameter);
    else if (is_precision(name))
      named(MemoryFact::kPrecision, parameter);
  }
}

void MemoryFacts::not_told(bool other_parameters) {
  std::vector<std::string> unknown;
  const auto add = [&](std::string_view what, bool a, bool b) {
    if (!a || !b) unknown.push_back(fmt::format("{} of {}", what, !a && !b ? "either" : a ? "B" : "A"));
  };
  const auto recorded = [](const Side& side) {
    return std::all_of(side.samples.begin(), side.samples.end(),
                       [](const Sample& run) { return run.variables.has_value(); });
  };
  add("the environment", recorded(a_), recorded(b_));
  add("the processes on the GPU", a_.processes.has_value(), b_.processes.has_value());
  say(MemoryFact::kNotTold,
      fmt::format("what the recordings keep does not tell why: GPUs, tasks, processes on the GPU, the allocator's "
                  "settings, batch size and precision are the same as far as they are known{}{}; the program's own "
                  "account would tell, such as torch.cuda.memory_summary() at the end of both",
                  unknown.empty() ? "" : fmt::format(" (not recorded: {})", join(unknown, ", ")),
                  other_parameters ? ", and of the parameters that differ only who knows the program can say" : ""));
}

}  // namespace

std::vector<ComparedMemory> memory_facts(const Side& a, const Side& b, const std::vector<ComparedFigure>& figures,
                                         const std::vector<ComparedParameter>& parameters) {
  const auto peak = held(figures, "peak_memory"), mean = held(figures, "mean_memory");
  const bool peak_differs = peak && memory_differs(peak->a, peak->b),
             mean_differs = mean && memory_differs(mean->a, mean->b);
  if (!peak_differs && !mean_differs) return {};
  MemoryFacts facts(a, b);
  if (peak_differs) facts.say(MemoryFact::kPeak, held_words(*peak));
  if (mean_differs)
    facts.say(
        MemoryFact::kMean,
        held_words(*mean) + (peak && !peak_differs ? "; the peaks do not differ: how long memory was held does" : ""));
  const std::size_t differences = facts.list_.size();
  facts.gpus(), facts.tasks(), facts.holders(), facts.parameters(parameters);
  if (peak_differs && facts.list_.size() == differences) facts.not_told(!parameters.empty());
  return std::move(facts.list_);
}

}  // namespace headroom::compare
