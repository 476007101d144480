// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "analyze/evidence.h"
#include "analyze/gpu_works.h"

// What a profiler saw (tier C): copies without a kernel, work that was launched and had not begun, and else what the
// thread was at whose launch came next: that is the one the device waited for.
namespace headroom {

// The place of time in which work that was launched had not begun.
inline constexpr std::string_view kNotBegun = "launched, not begun";

class ProfiledCalls final : public Evidence {
 public:
  // Looks into `recording`, which outlives it.
  explicit ProfiledCalls(const Recording& recording);
  [[nodiscard]] bool empty() const { return devices_.empty(); }
  void claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const override;
  void cut(const Use&, std::vector<Nanos>&) const override {}  // it splits a stretch itself

 private:
  enum class State : std::uint8_t { kNothing, kAtWork, kWaits, kLoads };
  struct Call {  // what a list of operator and call says of the thread that is in them
    State state{};
    bool launches = false;
    std::string_view where;  // the operator, or the call where it is in none, or waits
  };
  struct Launch {
    Nanos begin = 0, end = 0;
    std::size_t thread = 0;
  };
  struct Process {
    std::vector<const std::vector<ListRow>*> threads;
    std::vector<Launch> launches;  // in order of begin
  };
  [[nodiscard]] Call call_of(const ListRow& row) const { return row.list < calls_.size() ? calls_[row.list] : Call{}; }
  void add_thread(const Recording& recording, SourceId source);
  void host(const Process& process, Nanos begin, Nanos end, std::vector<HostShare>& shares) const;

  std::vector<Call> calls_;  // by list
  std::map<SourceId, std::vector<WorkStretch>> devices_;
  std::map<SourceId, Process> processes_;
};

}  // namespace headroom
