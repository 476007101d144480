// SPDX-License-Identifier: Apache-2.0
#include "model/job_variables.h"

#include <algorithm>
#include <array>

#include "model/slurm.h"

namespace headroom {

namespace {

// clang-format off
constexpr std::array<std::string_view, 15> kPrefixes{
    "CUBLAS_", "CUDA_", "CUDNN_", "GOMP_", "JAX_", "KMP_", "MKL_", "NCCL_", "NUMEXPR_", "OMP_", "OPENBLAS_", "PYTORCH_",
    "TORCH_", "VECLIB_", "XLA_"};
constexpr std::array<std::string_view, 18> kNames{
    "ACCELERATE_MIXED_PRECISION", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "NUM_WORKERS", "NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES",
    "PYTHONHASHSEED", "PYTHONUNBUFFERED", "RANK", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS",
    "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR", "TF_XLA_FLAGS", "TOKENIZERS_PARALLELISM", "USE_AMP", "WORLD_SIZE"};
constexpr std::array<std::string_view, 5> kPlaces{
    "CUDA_VISIBLE_DEVICES", "LOCAL_RANK", "NODE_RANK", "NVIDIA_VISIBLE_DEVICES", "RANK"};
// clang-format on

constexpr std::string_view kRecorded = "variables", kVariable = "variable ";  // in RecordingMeta::extra

}  // namespace

bool is_job_variable(std::string_view name) {
  return is_slurm_variable(name) || std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

bool is_placement(std::string_view name) {
  return is_slurm_variable(name) || std::find(kPlaces.begin(), kPlaces.end(), name) != kPlaces.end();
}

void keep_job_variables(const JobVariables& variables, RecordingMeta& meta) {
  meta.extra[std::string(kRecorded)] = std::to_string(variables.size());
  for (const auto& [name, value] : variables) meta.extra[std::string(kVariable) + name] = value;
}

std::optional<JobVariables> job_variables(const RecordingMeta& meta) {
  if (!meta.extra.contains(std::string(kRecorded))) return std::nullopt;
  JobVariables variables;
  for (const auto& [name, value] : meta.extra)
    if (name.starts_with(kVariable)) variables.emplace_back(name.substr(kVariable.size()), value);
  return variables;
}

}  // namespace headroom
