// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/box_watch.h"
#include "cli/growing_recording.h"
#include "cli/open_recording.h"
#include "diagnose/explain.h"
#include "record/growing.h"
#include "report/live_findings.h"
#include "screen/scene.h"
#include "stacks/families.h"

namespace headroom::cli {

// A recording that is looked at again and again, perhaps while it is written. It is only read, as any reader does: its
// writer waits for nothing.
class WatchedRecording {
 public:
  [[nodiscard]] static Result<WatchedRecording> open(const std::string& what, const ImportOptions& import);
  // Several as one, which does not grow; of no words the last.
  [[nodiscard]] static Result<WatchedRecording> open(const std::vector<std::string>& words,
                                                     const ImportOptions& import);
  // This machine, recorded from now on; once there is something to be seen of it.
  [[nodiscard]] static Result<WatchedRecording> open_box(const BoxWatch::Options& options, const ImportOptions& import);

  // Reads it again if it has grown, or if its writer has been silent so long that it may be dead, and if that costs
  // little of a core. True: it is another one now. What cannot be read leaves what was there, and trouble().
  bool look_again();
  // Of `last`, once that has ended, and of this machine: the one that was begun since takes its place, and this says
  // so. Nothing where there is none.
  std::optional<std::string> go_on_with_next();
  [[nodiscard]] bool watches_box() const { return box_ != nullptr; }
  [[nodiscard]] bool has_found_job() const { return box_ && box_->has_found_job(); }
  // boottime; far off for what no longer grows, unless it is `last`
  [[nodiscard]] Nanos next_look() const { return next_look_; }
  void explain_window(const screen::State& state);
  [[nodiscard]] Nanos explaining_cost() const { return explaining_cost_; }

  // The length of the whole recording, whatever is kept of it.
  [[nodiscard]] Nanos span() const { return recording().meta.end - begin(); }
  [[nodiscard]] bool grows() const;  // a file of ours; what is a copy of one in another form stays as it is
  [[nodiscard]] screen::Scene scene() const;
  [[nodiscard]] const Recording& recording() const { return is_read_on() ? growing_->recording() : opened_.recording; }
  [[nodiscard]] const std::string& path() const { return opened_.path; }
  [[nodiscard]] const std::string& name() const { return name_; }  // for people
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  [[nodiscard]] Nanos begin() const { return is_read_on() ? growing_->begin() : opened_.recording.meta.start; }
  [[nodiscard]] bool is_read_on() const { return growing_ && growing_->has_read(); }
  void keep_what_is_shown(Nanos from);
  [[nodiscard]] std::vector<std::string> what_is_lacking() const;
  [[nodiscard]] std::optional<Nanos> begin_of_recent(std::pair<Nanos, Nanos> window) const;
  void explain_in(const Recording& part, const ExplainOptions& options);
  void tell_times_of_all(RecordingMeta& meta) const;
  void plan_next_look();
  [[nodiscard]] ExplainOptions explaining() const;
  void look_for_findings();
  [[nodiscard]] std::optional<std::string> go_on_in_box();
  [[nodiscard]] std::optional<WatchedRecording> begun_elsewhere() const;

  std::unique_ptr<BoxWatch> box_;
  std::string newest_before_;  // on the shelf, when this machine was begun to be watched
  ImportOptions import_;
  bool newest_ = false;  // it was asked for as `last`
  OpenedRecording opened_;
  std::optional<GrowingRecording> growing_;  // where what was opened grows: read when it first has
  std::string name_, trouble_;
  std::string hidden_;  // of others' processes, in words
  Explanation explanation_;
  view::View view_;
  std::vector<stacks::FamilyRule> families_;
  FileTrace trace_{};
  report::LiveFindings findings_{{}};                                   // of all of it, looked for as it grows
  Nanos next_findings_ = 0;                                             // boottime
  Nanos read_at_ = 0, next_look_ = 0, cost_ = 0, explaining_cost_ = 0;  // costs: CPU of the last time
};

// Sends a signal to a process that the recording, which must be of this machine as it runs now, names by number and
// start; to no other that has got the number since.
[[nodiscard]] Result<void> send_signal(const Recording& recording, const screen::Wish& wish);

}  // namespace headroom::cli
