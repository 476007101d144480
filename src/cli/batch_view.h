// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "batch/messages.h"
#include "cli/terminal.h"
#include "model/batch_progress.h"
#include "report/layout.h"
#include "view/batch_trail.h"

namespace headroom::cli {

// The progress of a running batch for people, on stderr: on a terminal a few lines that are repainted, with what
// happens above them; in a log only what happens, and a line of progress every half minute.
class BatchView {
 public:
  explicit BatchView(bool quiet);
  void note(batch::MessageKind kind, const std::string& text);
  void show(const BatchProgress& progress);  // as often as the caller likes
  void output(const std::string& lines);     // of the tasks, on stdout
  // Nobody has read what came last: more of the tasks' output can wait in their logs.
  [[nodiscard]] bool output_waits() const { return out_.waiting() || screen_.waiting(); }
  void finish();  // clears what is repainted

 private:
  void clear();
  void paint(const BatchProgress& progress);
  report::TextOptions layout_;
  bool terminal_ = false, quiet_ = false;
  std::size_t lines_ = 0;  // painted, above the cursor
  view::BatchTrail trail_;
  Screen screen_, out_;
  Nanos last_line_ = 0;
};

}  // namespace headroom::cli
