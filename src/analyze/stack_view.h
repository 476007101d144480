// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/recording.h"
#include "stacks/families.h"

namespace headroom {

inline constexpr std::int64_t kHoldsTheGil = 1;  // ListRow::value of a python_thread

// What another thread was at while the main thread was at something itself: one that has the interpreter before others.
struct BesideMain {
  std::uint32_t kind = UINT32_MAX;  // index into StackView::kinds, or kNobody
  bool has_interpreter = false;
  static constexpr std::uint32_t kNobody = UINT32_MAX;
};

// What a process was at, look by look: of its threads the one that tells most. Rows of one thread are looked at where
// they lie: of a day they are many millions.
class ProcessLooks {
 public:
  explicit ProcessLooks(std::span<const ListRow> of_one_thread) : recorded_(of_one_thread) {}
  ProcessLooks(std::vector<ListRow> chosen, std::vector<BesideMain> beside)
      : chosen_(std::move(chosen)), beside_(std::move(beside)) {}
  // In order of time, one for each instant.
  [[nodiscard]] std::span<const ListRow> all() const {
    return chosen_.empty() ? recorded_ : std::span<const ListRow>(chosen_);
  }
  [[nodiscard]] bool of_one_thread() const { return chosen_.empty(); }  // it never had another one
  [[nodiscard]] bool has_beside() const { return !beside_.empty(); }
  [[nodiscard]] BesideMain beside(const ListRow& look) const {  // `look` is one of all()
    return beside_.empty() ? BesideMain{} : beside_[static_cast<std::size_t>(&look - chosen_.data())];
  }

 private:
  std::span<const ListRow> recorded_;
  std::vector<ListRow> chosen_;     // where there are several threads
  std::vector<BesideMain> beside_;  // by position in chosen_; empty: there never was anybody
};

// The Python stacks of a recording (tier Y), into which it looks.
struct StackView {
  std::vector<stacks::StackKind> kinds;
  // Of several threads at something while the main thread waits nothing tells for which: a look at that instant has a
  // list beyond those of the recording, which stands for these of the recording.
  std::vector<std::vector<ListId>> several;  // by list, less the recording's
  std::vector<std::uint32_t> kind_of_list;   // index into `kinds`, for lists that are in looks
  std::vector<stacks::Busy> busy_of_list;    // likewise of their kinds
  std::vector<std::int32_t> line_of_list;    // likewise, that ran of what they name; 0: not known
  std::vector<double> count;                 // of the looks at all processes, by kind
  // Of a function of the user's: the looks at it, but those of waits for kernels, by who of his had called it.
  std::map<std::string, std::map<std::string, double>> callers;
  // Of each place the looks at it, but those of waits for kernels, in all ("") and by each other function of the user's
  // that was on the stack outside of it.
  std::map<std::string, std::map<std::string, double>> held_by;
  // Functions of the user's that are on nearly all stacks of a process, imports aside: they hold all that it does.
  std::set<std::string> hold_all;
  std::map<SourceId, ProcessLooks> looks;  // by process
  // Which processes waited for another one of the job at stacks of which kind: what their names leave open, set by
  // for_peers() of peer_waits.h.
  std::set<std::pair<SourceId, std::uint32_t>> for_peers;

  [[nodiscard]] std::uint32_t number_of(const ListRow& look) const { return kind_of_list[look.list]; }
  [[nodiscard]] const stacks::StackKind& kind_of(const ListRow& look) const { return kinds[number_of(look)]; }
};
[[nodiscard]] StackView stack_view(const Recording& recording, const stacks::Families& families);

// How many are not later than `at`. Looks come at a steady pace, so that an instant says about where.
[[nodiscard]] std::size_t count_until(std::span<const ListRow> looks, Nanos at);
// Those in (begin, end].
[[nodiscard]] std::span<const ListRow> looks_within(std::span<const ListRow> looks, Nanos begin, Nanos end);

}  // namespace headroom
