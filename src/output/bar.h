// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Progress bars as they are drawn in lines, and which of them count the steps of a training. Pure.
namespace headroom::output {

// What a bar is about, by its description.
enum class BarOf : std::uint8_t { kUnknown, kTrain, kValidate, kTest, kPredict, kSanityCheck, kEpochs, kOther };

struct Bar {
  enum class Style : std::uint8_t { kTqdm, kKeras, kRich };
  Style style = Style::kTqdm;
  std::string_view description;  // "" for none
  BarOf of = BarOf::kUnknown;
  std::int64_t done = 0;
  std::optional<std::int64_t> total;  // where it is known
  bool counts_steps = true;           // false: its unit is bytes, samples, files, …
  std::string_view rest;              // metrics, as they are written there

  [[nodiscard]] bool complete() const { return total && done >= *total; }
};

// The bar that a line is, if it is one. Views are into the line.
[[nodiscard]] std::optional<Bar> bar_of(std::string_view line);

// What a description speaks of: "Epoch 3", "Validation DataLoader 0", "Epoch 3/5 [val]"; kOther where it is anything
// else.
[[nodiscard]] BarOf bar_about(std::string_view description);

// Of all bars of a job one counts its steps: a bar that says it is about training before one without a description; of
// those the one that moved first (an inner bar moves before the bar around it); another one without a description once
// it comes again and again, and the first has not (that one was about preparations).
class StepBars {
 public:
  // The steps that were done since this bar was last drawn; 0 where it is not the one that counts.
  std::int64_t take(const Bar& bar);
  // Whether the bar taken last is the one that counts, or became it.
  [[nodiscard]] bool leads() const { return leads_; }
  // Whether the bar taken last began afresh while the one that counts was not complete: it is drawn within that.
  [[nodiscard]] bool began_within() const { return began_within_; }
  // Whether this bar would begin: it was not seen before, or went back.
  [[nodiscard]] bool begins(const Bar& bar) const;
  // As take(), without steps: the bar moves for another reason (it counts what is validated, too).
  void pass(const Bar& bar);

 private:
  struct Family {
    std::string key;  // its description without numbers; without one, its total
    bool is_train = false;
    std::int64_t done = 0;
    bool complete = false;
    int cycles = 1;
  };
  [[nodiscard]] static std::string key_of(const Bar& bar);
  Family& family_of(const Bar& bar);
  [[nodiscard]] bool takes_over(const Family& family) const;

  std::vector<Family> families_;
  std::string leader_;  // a key; "" for none
  bool leads_ = false, began_within_ = false, fresh_ = false;
};

}  // namespace headroom::output
