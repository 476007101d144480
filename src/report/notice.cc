// SPDX-License-Identifier: Apache-2.0
#include "report/notice.h"

#include "base/json.h"
#include "report/finding_json.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

Json tasks_json(const std::optional<BatchSummary::Tasks>& tasks) {
  if (!tasks) return nullptr;
  return {{"total", tasks->total},     {"succeeded", tasks->succeeded}, {"failed", tasks->failed},
          {"skipped", tasks->skipped}, {"cancelled", tasks->cancelled}, {"left", tasks->left}};
}

constexpr int kOneLine = -1;

struct Said {
  bool live = false, withdrawn = false, over = false;
};

std::string notice(const EndNotice& end, Json finding, const Said& said) {
  return dump({{"schema", "headroom.notify-finding/1"},
               {"verb", end.verb},
               {"recording", text_json(end.recording)},
               {"command", end.command},
               {"live", said.live},
               {"withdrawn", said.withdrawn},
               {"over", said.over},
               {"finding", std::move(finding)}},
              kOneLine);
}

}  // namespace

std::string to_json(const EndNotice& end, const Explanation* explanation) {
  const bool found = explanation != nullptr && !explanation->findings.empty();
  return dump({{"schema", "headroom.notify-end/1"},
               {"verb", end.verb},
               {"recording", text_json(end.recording)},
               {"command", end.command},
               {"exit_code", optional_json(end.exit_code)},
               {"signal", optional_json(end.signal)},
               {"stop_reason", text_json(end.stop_reason)},
               {"duration_ns", end.duration},
               {"tasks", tasks_json(end.tasks)},
               {"headline", explanation == nullptr ? Json(nullptr) : Json(explanation->headline)},
               {"top_finding", found ? finding_json(*explanation, 0) : Json(nullptr)}},
              kOneLine);
}

std::string finding_notice(const EndNotice& end, const Explanation& explanation, std::size_t index, Told when) {
  return notice(end, finding_json(explanation, index), {.live = when == Told::kLive});
}

std::string withdrawn_notice(const EndNotice& end, const std::string& finding) {
  return notice(end, parse_json<Json>(finding), {.withdrawn = true});
}

std::string over_notice(const EndNotice& end, const std::string& finding, Told when) {
  return notice(end, parse_json<Json>(finding), {.live = when == Told::kLive, .over = true});
}

std::string finding_text(const Explanation& explanation, std::size_t index) {
  return dump(finding_json(explanation, index), kOneLine);
}

}  // namespace headroom::report
