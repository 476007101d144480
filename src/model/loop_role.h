// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// A part of what a training program does again and again.
enum class LoopPart : std::uint8_t { kUnknown, kLoading, kStep, kLogging, kEvaluation, kSaving, kEpochEnd };

// When code runs between the first kernel and the last.
enum class Recurs : std::uint8_t {
  kUnknown,
  kThroughout,  // in nearly every second: with each step, or every so many
  kAtTimes,     // more than a second apart
  kEachEpoch,   // such times are those between the job's epochs
  kOnce,        // in the time that was looked at
};

// Which part of the loop the code is of that most of a finding's time certainly went to, as far as it is known.
struct LoopRole {
  LoopPart part = LoopPart::kUnknown;
  Recurs recurs = Recurs::kUnknown;
  std::string caller;  // whose name tells the part: "train_step (train.py)"; "" where it is told otherwise
  bool operator==(const LoopRole&) const = default;

  [[nodiscard]] bool known() const { return part != LoopPart::kUnknown || recurs != Recurs::kUnknown; }
};

[[nodiscard]] std::string_view name_of(LoopPart part);  // in JSON: "epoch_end"; "" where it is unknown
[[nodiscard]] std::string_view name_of(Recurs recurs);

}  // namespace headroom
