// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/batch.h"

// Headroom gives a task its GPU by a mask around it. A command that chooses a GPU by itself contradicts that: with
// another ordinal it fails or lands elsewhere, with a mask of its own it replaces Headroom's.
namespace headroom::tasks {

struct SecondPin {
  std::string where;    // "argument 4", "environment", "shell line"
  std::string text;     // as it stands there: "--gpu-device-id 1", "CUDA_VISIBLE_DEVICES=0"
  std::string instead;  // what fits: "--gpu-device-id {gpu}"
  std::string why;      // "the task sees one GPU, number 0"
  bool operator==(const SecondPin&) const = default;
};
// Where a task of this many GPUs pins a second time. What agrees with the mask (ordinals that the task sees, {gpu},
// CUDA_VISIBLE_DEVICES={gpu_uuid}) is none.
[[nodiscard]] std::vector<SecondPin> second_pins(const TaskSpec& task);

enum class PinPolicy : std::uint8_t { kRefuse, kRewrite, kAllow };
// kRefuse: kInvalidInput for the first second pin. kRewrite: every place says `instead` afterwards.
[[nodiscard]] Result<void> settle_second_pins(TaskSpec& task, PinPolicy policy);

}  // namespace headroom::tasks
