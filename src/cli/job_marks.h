// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/cli11.h"
#include "live/session.h"
#include "marks/directory.h"

// What a job can say of itself while it is recorded: by marks in its code, and by NVTX.
namespace headroom::cli {

struct MarksChoice {
  bool no_marks = false, no_nvtx = false;
};
void declare_marks_options(CLI::App& app, MarksChoice& choice);

// The place where a job's processes put their marks, from before it starts to its end.
class JobMarks {
 public:
  // Never fails: a recording without marks says why.
  [[nodiscard]] static JobMarks prepare(const MarksChoice& choice);

  // What the job's processes need to have in their environment: "NAME=value".
  [[nodiscard]] const std::vector<std::string>& environment() const { return environment_; }
  // Of those made from `since` on.
  void add_to(SessionOptions& session, Nanos since) const;
  // Why ranges of NVTX are not recorded, where marks are; "": they are.
  [[nodiscard]] const std::string& no_nvtx() const { return no_nvtx_; }
  void remove();  // when all that there is was read

 private:
  std::optional<marks::RingDirectory> directory_;
  std::vector<std::string> environment_;
  std::string why_not_, no_nvtx_;
};

}  // namespace headroom::cli
