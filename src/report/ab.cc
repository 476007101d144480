// SPDX-License-Identifier: Apache-2.0
#include "report/ab.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/visible.h"
#include "report/compare.h"
#include "report/json_values.h"

namespace headroom::report {

std::string to_text(const Comparison& comparison, const AbFacts& facts, const TextOptions& given) {
  const TextOptions options = clamped(given);
  std::string text = to_text(comparison, options);
  if (!facts.stopped.empty())
    text += wrap(fmt::format("{}{}.", facts.stopped,
                             facts.interrupted && comparison.comparable() ? ": this is a part of the answer" : ""),
                 options.width, "", "");
  if (facts.interrupted || !facts.failed.empty()) text += "Go on: " + visible(facts.resume) + "\n";
  return text + fmt::format("Recordings: {}/runs\n", visible(facts.folder));
}

std::string to_json(const Comparison& comparison, const AbFacts& facts) {
  Json json = parse_json<Json>(to_json(comparison));
  json["ab"] = {{"pairs", facts.pairs},
                {"order", facts.order},
                {"seed", facts.seed},
                {"stopped", text_json(facts.stopped)},
                {"failed", text_json(facts.failed)},
                {"resume", facts.resume},
                {"folder", facts.folder}};
  return dump(json);
}

}  // namespace headroom::report
