// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/explanation.h"

// Which findings are told while the work goes on (--on-finding), which of them are over, and which no longer hold at
// the end.
namespace headroom::report {

// What a young recording seems to say is often untrue a minute later: start-up looks like waiting for data. So most
// findings are told once
//   the recording covers two minutes,
//   their confidence is medium or high,
//   they have cost a minute of GPU time, and a twentieth of all of it,
//   and they held in every look for half a minute.
// An alarm waits for none of this: a GPU that the driver lost; a batch whose first four tasks all failed; a GPU that is
// held and has run no kernel for a minute while its process does nothing, or for five minutes while that does something
// else, and for twice as long as it ever paused before.
struct LiveRule {
  Nanos evidence = 120 * kSecond, cost = 60 * kSecond, held = 30 * kSecond;
  double share = 0.05;
  Nanos standstill = 60 * kSecond, at_work = 300 * kSecond;
  std::int64_t failures = 4;
};

// One for each finding: its cause, or its candidates, and how many of that come before it. The same in every look.
[[nodiscard]] std::vector<std::string> finding_keys(const Explanation& explanation);

// One that was told and holds.
struct StandingFinding {
  std::string key, title, advice;
  bool alarm = false;
  // On the recording's clock. Of a standstill or a lost GPU: when its GPUs last worked or were free. Of a batch that
  // fails: when that was told. Of others: since when every look has found it.
  Nanos since = 0;
  bool operator==(const StandingFinding&) const = default;
};

class LiveFindings {
 public:
  explicit LiveFindings(LiveRule rule) : rule_(rule) {}

  struct Fresh {
    const Explanation* explanation = nullptr;
    std::size_t finding = 0;  // position in its findings
    std::string key;
    bool alarm = false;
  };
  struct News {
    std::vector<Fresh> fresh;       // to be told now: each once, an alarm again after it was over
    std::vector<std::string> over;  // keys of alarms that were told and whose matter is over
  };
  // `recent`: the last minutes explained alone, where a standstill is no small part; may be `whole` itself. Both have
  // to live as long as the answer is used.
  [[nodiscard]] News look(const Explanation& whole, const Explanation& recent);
  // What stands as of the last look, in the order in which it was told: an alarm until it is over; another as long as
  // the whole recording has it, and it costs time in the last minutes.
  [[nodiscard]] std::vector<StandingFinding> now() const;

 private:
  enum class Kind { kUsual, kLost, kFailingBatch, kStandstill };
  struct Alarm {
    Kind kind = Kind::kUsual;
    std::set<std::string> gpus;  // by UUID: another explanation may number them otherwise
    Nanos told_at = 0;
  };
  struct Told {
    StandingFinding finding;
    bool holds = true;
  };
  [[nodiscard]] static Kind kind_of(const Finding& finding);
  [[nodiscard]] bool rings(const Finding& finding, const Explanation& in, const Explanation& whole) const;
  [[nodiscard]] bool stands(const Finding& finding, const Explanation& in, const Explanation& whole) const;
  // The alarm that this goes on with; nullptr: there is none.
  [[nodiscard]] const std::string* stood_already(const Finding& finding, const std::set<std::string>& gpus) const;
  [[nodiscard]] static bool is_over(const Alarm& alarm, const Explanation& whole);
  // Whether this loss of a GPU was seen in an earlier look.
  [[nodiscard]] bool is_known_loss(const Finding& finding, const std::set<std::string>& gpus);
  void stands_no_more(const std::string& key);
  void call_it(const std::string& key, const Finding& finding);
  void see_what_holds(const Explanation& whole, const Explanation& recent);

  LiveRule rule_;
  std::map<std::string, Nanos> since_;  // of each finding that held in every look since then
  std::set<std::string> told_;
  std::map<std::string, Alarm> alarms_;  // told, and not over
  // GPUs that the driver lost, with the end of the last loss that was seen: the recording keeps one that is over.
  std::map<std::set<std::string>, Nanos> lost_until_;
  std::vector<Told> standing_;  // of told_, in that order
};

// One that was told.
struct ToldFinding {
  std::string key, finding;  // the finding as JSON, as it was
  bool alarm = false;        // what it says was so at that moment, whatever the report at the end finds
  bool over = false;         // that was told, too
  bool operator==(const ToldFinding&) const = default;
};

struct LeftToTell {
  std::vector<std::size_t> fresh;  // positions in Explanation::findings
  // Told, and nothing of its cause is found any more: it did not hold, or, of an alarm, it is over with the work.
  std::vector<ToldFinding> withdrawn, over;
};
[[nodiscard]] LeftToTell left_to_tell(const std::vector<ToldFinding>& told, const Explanation& explanation);

}  // namespace headroom::report
