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

// Which epoch, or which fold, a job's lines say that it is at. Pure.

// A header says when an epoch begins, a bar of epochs when one has ended. A line with a loss comes at an epoch's end;
// where there are several of one epoch, somewhere within. Where lines say of how many, those that do not are left out.
class ToldPlace {
 public:
  // `state`: as in events::Progress. The state to hand on with this number; nothing where it says nothing new.
  std::optional<std::string_view> take(NumberOf at, std::string_view state);

 private:
  std::optional<NumberOf> at_;
  std::string_view state_;  // in which the last one was told
};

}  // namespace headroom::output
