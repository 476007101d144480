// SPDX-License-Identifier: Apache-2.0
#include "model/explanation.h"

namespace headroom {

std::string_view answer_name(Answer answer) {
  switch (answer) {
    case Answer::kYes:
      return "yes";
    case Answer::kNo:
      return "no";
    case Answer::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace headroom
