// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "model/recording.h"

namespace headroom::python {

// Numbers of names of code in a recording. Once that takes no more texts, what is new is kOtherCode.
class CodeNames {
 public:
  // kNoText if the recording takes nothing at all.
  [[nodiscard]] TextId number_of(std::string_view name, RecordingSink& sink);
  [[nodiscard]] bool is_other(TextId number) const { return number == other_ && number != kNoText; }

 private:
  TextId other_ = kNoText;
};

}  // namespace headroom::python
