// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/batch.h"
#include "model/explanation.h"

// What commands of the user's are told (--on-end, --on-finding).
namespace headroom::report {

struct EndNotice {
  std::string verb;                  // "run", "record", "batch"
  std::string recording;             // a path; "" where there is none
  std::vector<std::string> command;  // with secrets hidden as in the recording
  // Of the job that was run, one of the two; of a batch what it ends with; of a recording of others neither.
  std::optional<int> exit_code, signal;
  std::string stop_reason;  // as in the recording's meta
  Nanos duration = 0;
  std::optional<BatchSummary::Tasks> tasks;  // of a batch
};
// "headroom.notify-end/1", one line. Without an explanation nothing is known of GPUs.
[[nodiscard]] std::string to_json(const EndNotice& end, const Explanation* explanation);

// "headroom.notify-finding/1", one line: explanation.findings[index].
enum class Told { kLive, kAtEnd };
[[nodiscard]] std::string finding_notice(const EndNotice& end, const Explanation& explanation, std::size_t index,
                                         Told when);
// The same of one that was told live and no longer holds: the finding as finding_text() had it.
[[nodiscard]] std::string withdrawn_notice(const EndNotice& end, const std::string& finding);
// The same of an alarm that was told and is over.
[[nodiscard]] std::string over_notice(const EndNotice& end, const std::string& finding, Told when);
[[nodiscard]] std::string finding_text(const Explanation& explanation, std::size_t index);  // JSON

}  // namespace headroom::report
