// SPDX-License-Identifier: Apache-2.0
#include "output/told_place.h"

namespace headroom::output {

namespace {

int trust(std::string_view state) {
  return state == "begun" ? 4 : state == "counted" ? 3 : state == "within" ? 2 : state == "done" ? 1 : 0;
}

}  // namespace

std::optional<std::string_view> ToldPlace::take(NumberOf at, std::string_view state) {
  if (at.of == 0 && at_ && at_->of > 0) return std::nullopt;
  if (at_ && at_->of != at.of) state_ = {};  // another training, which may tell in another way
  if (state == "done" && at_ == at && state_ == "done") state_ = "within";
  if (state == "done" && state_ == "within") state = "within";
  if (trust(state) < trust(state_)) return std::nullopt;
  state_ = state;
  if (at_ == at) return std::nullopt;
  at_ = at;
  return state_;
}

}  // namespace headroom::output
