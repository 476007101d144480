// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "model/explanation.h"

// Which findings are told while the work goes on (--on-finding), and which of them no longer hold at the end.
namespace headroom::report {

// What a young recording seems to say is often untrue a minute later: start-up looks like waiting for data. So a
// finding is told once
//   the recording covers two minutes,
//   its confidence is medium or high,
//   it has cost a minute of GPU time, and a twentieth of all of it,
//   and it held in the look before, too.
struct LiveRule {
  Nanos evidence = 120 * kSecond, cost = 60 * kSecond;
  double share = 0.05;
};

// One for each finding: its cause, or its candidates, and how many of that come before it. The same in every look.
[[nodiscard]] std::vector<std::string> finding_keys(const Explanation& explanation);

class LiveFindings {
 public:
  explicit LiveFindings(LiveRule rule) : rule_(rule) {}
  // Those to be told now, as positions in Explanation::findings; each once.
  [[nodiscard]] std::vector<std::size_t> look(const Explanation& explanation);

 private:
  LiveRule rule_;
  std::set<std::string> before_, told_;
};

// One that was told.
struct ToldFinding {
  std::string key, finding;  // the finding as JSON, as it was
  bool operator==(const ToldFinding&) const = default;
};

struct LeftToTell {
  std::vector<std::size_t> fresh;      // positions in Explanation::findings
  std::vector<ToldFinding> withdrawn;  // told, and nothing of its cause is found any more
};
[[nodiscard]] LeftToTell left_to_tell(const std::vector<ToldFinding>& told, const Explanation& explanation);

}  // namespace headroom::report
