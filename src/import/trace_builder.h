// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "import/log_losses.h"
#include "import/trace_rows.h"
#include "model/dictionary.h"
#include "model/entities.h"
#include "model/gpu_work.h"
#include "model/recording.h"

namespace headroom {

// From the events of a trace, in any order, to a recording. Kept is what the ledger needs: of a device the time of each
// kind of work, of a thread its outermost operators, the CUDA calls that launch or wait, and longer ones.
class TraceBuilder {
 public:
  // `name` is the file's; `format` that of RecordingMeta::origin; `tool` is for people: "PyTorch's profiler".
  TraceBuilder(std::string name, std::string_view format, std::string_view tool)
      : name_(std::move(name)), format_(format), tool_(tool) {
    (void)names_.text("other names");  // 0: of all that are too many
  }

  // Ties work of a device to the call that launched it; 0 where it is not known.
  using Correlation = std::uint64_t;
  struct Thread {
    std::int64_t pid = 0, tid = 0;
    auto operator<=>(const Thread&) const = default;
  };

  // Times are nanoseconds of one clock; `finish` says where on the calendar its zero lies.
  void work(int device, GpuWork what, Nanos begin, Nanos end, Correlation correlation);
  void call(const Thread& thread, std::string_view call, Nanos begin, Nanos end, Correlation correlation);
  void op(const Thread& thread, std::string_view name, Nanos begin, Nanos end);
  // A function of Python, as recordings name frames (model/recording.h): of a thread all within each other.
  void function(const Thread& thread, std::string_view frame, Nanos begin, Nanos end);
  // A range that the job's own code, its framework or a library opened, by its name.
  void annotation(const Thread& thread, std::string_view name, Nanos begin, Nanos end);
  void step(const Thread& thread, Nanos begin, Nanos end);  // one optimizer step, where the trace tells them

  Device& device(int index) { return devices_[index]; }  // facts; it is in the recording if it had work
  void process_name(std::int64_t pid, std::string_view name) { process_names_[pid] = std::string(name); }
  void written_by(std::string_view tool) { tool_ = tool; }  // where only its events tell
  LogLosses& losses() { return losses_; }
  Attrs& extra() { return extra_; }
  std::string host;
  bool other_annotations = false;  // it has some that are not read

  // `via`: who names the annotations, "trace" or "nvtx".
  [[nodiscard]] Result<Recording> finish(Nanos realtime_of_zero, std::string_view via);

 private:
  struct Work {
    Nanos begin = 0, end = 0;
    Correlation correlation = 0;
    GpuWork what{};
  };
  struct Launch {  // a call that gives work to a device
    Correlation correlation = 0;
    Nanos end = 0;
    std::int64_t pid = 0;
    bool operator<(const Launch& other) const { return correlation < other.correlation; }
  };
  struct CopyLaunch {  // a call that copies, and where it was made
    Correlation correlation = 0;
    Thread thread;
    Nanos at = 0;
    bool operator<(const CopyLaunch& other) const { return correlation < other.correlation; }
  };
  struct ThreadCalls {
    std::vector<NamedInterval> intervals;  // operators at depth 0, calls at depth 1
    std::array<NamedInterval, 2> last{};   // kept, by depth: what follows is often within it
    std::size_t tidy_at = 4096;            // intervals within others are left out from time to time
    std::vector<NamedInterval> functions, annotations;
    std::vector<std::pair<Nanos, Nanos>> steps;
  };

  void seen(Nanos begin, Nanos end);
  [[nodiscard]] TextId number_of(std::string_view name);
  void add(ThreadCalls& thread, const NamedInterval& interval);
  static void tidy(ThreadCalls& thread);
  [[nodiscard]] const Launch* launch_of(const Work& work) const;
  [[nodiscard]] std::int64_t main_process() const;
  // Of copies, by kind, the operator that most of their time was launched by; none where most were launched by none.
  [[nodiscard]] Attrs copied_by(const std::vector<Work>& works) const;
  [[nodiscard]] TextId operator_at(const CopyLaunch& launch) const;  // 0: in none
  [[nodiscard]] RecordingMeta make_meta(Nanos shift, bool annotated) const;
  void add_device(MemorySink& sink, int index, Nanos shift, const RecordingMeta& meta);
  void add_work(MemorySink& sink, SourceId source, std::vector<Work> works, Nanos shift, Nanos start) const;
  void add_thread(MemorySink& sink, const Thread& key, ThreadCalls& thread, Nanos shift, std::string_view via);
  SourceId process(MemorySink& sink, std::int64_t pid);

  std::string name_;
  std::string_view format_, tool_;
  std::map<int, Device> devices_;
  std::map<int, std::vector<Work>> works_;
  std::map<Thread, ThreadCalls> threads_;
  std::vector<Launch> launches_;
  std::vector<CopyLaunch> copies_;
  Dictionary names_;
  std::map<std::int64_t, std::string> process_names_;
  LogLosses losses_;
  Attrs extra_;
  bool operators_ = false, calls_ = false;  // at least one
  Nanos first_ = INT64_MAX, last_ = INT64_MIN;
};

}  // namespace headroom
