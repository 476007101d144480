// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

// "Epoch 3/5", "step 120 of 267": where a line says that its job is. Pure.
namespace headroom::output {

struct NumberOf {
  std::int64_t number = 0, of = 0;  // of 0: not said
  bool operator==(const NumberOf&) const = default;
};

// "Epoch 3/5", "epoch [3/5]", "Epoch: 3 of 5"; nothing where the line does not say of how many.
[[nodiscard]] std::optional<NumberOf> epoch_in(std::string_view line);
// Likewise "step 120/267", "iter [120/267]", "Batch 120 of 267".
[[nodiscard]] std::optional<NumberOf> step_in(std::string_view line);
// "Epoch 3", "epoch 3 loss 0.3", with of 0; nothing where the line says of how many, or that so many are wrong.
[[nodiscard]] std::optional<NumberOf> epoch_alone_in(std::string_view line);
// "Fold 1/5", "fold 1 of 5"; "Fold 1" with of 0.
[[nodiscard]] std::optional<NumberOf> fold_in(std::string_view line);
// "[Fold 1/5] Epoch 3/10" without its first part, where something of a training follows; else the line.
[[nodiscard]] std::string_view within_fold(std::string_view line);
// "Epoch 3: …", "Epoch 3/5": what is counted beside it is of that epoch.
[[nodiscard]] bool names_an_epoch(std::string_view line);

}  // namespace headroom::output
