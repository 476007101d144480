// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

#include "output/number_of.h"

// Which epoch, or which fold, a job's lines say that it is at. Pure.
namespace headroom::output {

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
