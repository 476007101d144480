// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/evidence.h"
#include "analyze/gpu_works.h"
#include "stacks/families.h"

// What a profiler saw (tier C): copies without a kernel, work that was launched and had not begun, and else what the
// thread was at whose launch came next: that is the one the device waited for. Where that was in no operator and no
// call, its Python functions tell, if they were traced (tiers CY: code that is not on its way to a launch).
namespace headroom {

// The place of time in which work that was launched had not begun.
inline constexpr std::string_view kNotBegun = "launched, not begun";

// What the Python functions of a trace tell of the job's code, by place as ProfiledCalls names it.
struct TracedCode {
  std::map<std::string, stacks::Family> families;  // where a rule knows them
  bool loader = false;  // functions or operators of PyTorch's or TensorFlow's loader are in it
};
[[nodiscard]] TracedCode traced_code(const Recording& recording, const stacks::Families& families);

class ProfiledCalls final : public Evidence {
 public:
  // Looks into `recording`, which outlives it.
  ProfiledCalls(const Recording& recording, const stacks::Families& families);
  [[nodiscard]] bool empty() const { return devices_.empty(); }
  void claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const override;
  void cut(const Use&, std::vector<Nanos>&) const override {}  // it splits a stretch itself

 private:
  struct Call {  // what a list of operator and call, or of Python functions, says of the thread that is in them
    Account account = Account::kUnexplained;  // of time in which the device waits for it
    bool launches = false, loads = false;
    bool in_python = false;  // in functions, and in none that launch
    // The operator, or the call where it is in none, or waits; or a function: of a library with the one that called it,
    // where that is the whole program.
    std::string where;
    std::string where_long;  // of a call within an operator that takes far longer than a launch: both
  };
  struct Launch {
    Nanos begin = 0, end = 0;
    std::size_t thread = 0;
  };
  struct Process {
    std::vector<const std::vector<ListRow>*> threads, loaders;
    std::vector<Launch> launches;  // in order of begin
  };
  [[nodiscard]] static Call call_of(const std::vector<std::string_view>& names, const stacks::Families& families);
  [[nodiscard]] const Call& call_of(const ListRow& row) const {
    static const Call none;
    return row.list < calls_.size() ? calls_[row.list] : none;
  }
  void add_thread(const Recording& recording, SourceId source);
  void input_alone(const Process& process, Nanos begin, Nanos end, std::vector<HostShare>& shares) const;
  void host(const Process& process, Nanos begin, Nanos end, std::vector<HostShare>& shares) const;

  std::vector<Call> calls_;  // by list
  std::map<SourceId, std::vector<WorkStretch>> devices_;
  std::map<SourceId, Process> processes_;
};

}  // namespace headroom
