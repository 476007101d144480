// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.h"
#include "model/explanation.h"
#include "model/finding.h"

// The answer of `headroom plan`: what to change, what that can gain, how to check and undo it (plan/plan.h). Mirrors
// the schema headroom.plan/1 (docs/json.md).
namespace headroom {

enum class Safety : std::uint8_t { kSafe, kModerate, kRisky };
struct SafetyInfo {
  Safety id;
  std::string_view name;  // JSON, and for people
  std::string_view help;
};
inline constexpr std::array kSafeties{
    SafetyInfo{Safety::kSafe, "safe", "the same results, and nothing else is put at risk"},
    SafetyInfo{Safety::kModerate, "moderate",
               "the same results as far as the code keeps to its own rules, or more memory"},
    SafetyInfo{Safety::kRisky, "risky", "results may change: check quality, too"},
};
static_assert(in_order_of_ids(kSafeties));
[[nodiscard]] constexpr const SafetyInfo& info(Safety safety) { return kSafeties[static_cast<std::size_t>(safety)]; }

// A change that may help.
struct Option {
  std::string id;                 // "more_loader_workers"; one of the catalogue's fixes
  std::size_t finding = 0;        // index into Explanation::findings
  std::optional<Cause> cause;     // absent where the finding is a set
  std::vector<Cause> candidates;  // for a set: this fix is for the first of them
  std::string title;              // what to do, one line
  Gain gain;                      // alone, of time at equal work
  Safety safety = Safety::kSafe;
  std::string why_safe;  // the reason for the class
  std::string effort;    // "one argument", "some lines", "a redesign"
  std::string apply;     // the exact edit or command
  std::string verify;    // the criterion, at equal work
  std::string undo;
  std::optional<std::string> setting;  // what Headroom itself can change: "batch.tasks_per_gpu=2"; else absent
  std::int64_t outcomes = 0;           // predictions for this cause that were verified so far, and shaped the interval
  bool operator==(const Option&) const = default;
};

// Options applied one after the other, each to what the ones before left: simulated, never summed.
struct OptionsTogether {
  std::vector<std::string> options;  // ids
  Gain gain;
  bool operator==(const OptionsTogether&) const = default;
};

struct Plan {
  std::string recording;        // path
  double seconds = 0;           // of the recorded work
  std::optional<double> work;   // steps, where the job counts them
  std::string nothing;          // why there is no option, in words; "" where there is one
  std::vector<Option> options;  // best expected gain against risk and effort first
  std::vector<OptionsTogether> after;
  std::string flips;  // the one observation that would change the order of the first two; "": none
  std::vector<Projection> projections;
};

}  // namespace headroom
