// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace headroom {

Nanos length(const Claims& claims) {
  Nanos sum = 0;
  for (const ClaimedPiece& piece : claims) sum += piece.end - piece.begin;
  return sum;
}

const OwnLimit* Finding::limit_of(Cause candidate) const {
  const auto found =
      std::find_if(limits.begin(), limits.end(), [&](const OwnLimit& one) { return one.cause == candidate; });
  return found == limits.end() ? nullptr : &*found;
}

std::string Gain::words() const {
  if (!none.empty()) return none + more;
  std::string text = any_cause ? "whatever the cause, " : "";
  if (!causes.empty()) {
    std::vector<std::string> names;
    for (const Cause cause : causes) names.emplace_back(info(cause).words);
    text = fmt::format("if the cause is {}, and ", join(names, " or "));
  }
  text += condition;
  if (later_starts) text += ", with the later starts";
  return text + more + beside;
}

}  // namespace headroom
