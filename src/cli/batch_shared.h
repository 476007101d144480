// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "batch/event_loop.h"
#include "batch/feeder.h"
#include "batch/prepare.h"
#include "batch/shared_work.h"
#include "cli/batch_options.h"
#include "live/loop.h"

// What `headroom batch --shared` does otherwise: one worker of several (batch/shared_work.h).
namespace headroom::cli {

// "Of the batch's 200 tasks 135 ended, 2 with other workers, 63 begun by nobody.", and what tells more.
[[nodiscard]] std::string batch_words(const batch::SharedProgress& now, const std::string& folder);

class SharedBatch {
 public:
  // kInvalidInput: options that do not go together, or a name that cannot be.
  [[nodiscard]] static Result<SharedBatch> prepare(const BatchCommand& command, const std::string& folder);
  [[nodiscard]] std::string worker_folder() const { return batch::folder_of_worker(folder_, worker_.name); }
  [[nodiscard]] std::string recording(const std::string& id) const;  // where it goes, unless somebody said otherwise

  // Once the worker's folder is locked. Instead of all tasks, `prepared` has those of a first piece; none: there is
  // nothing left to claim.
  [[nodiscard]] Result<void> begin(batch::Prepared& prepared);
  void feed(batch::BatchOptions& options, const batch::Prepared& prepared, std::size_t enough, batch::Say say);
  void keep_feeding(Loop& loop, batch::Batch& batch, batch::BatchLoop& batch_loop);  // all have to outlive the loop
  void end(bool told_to_end);

  [[nodiscard]] std::string begin_words() const;
  [[nodiscard]] std::string end_words() const;
  [[nodiscard]] bool any_failed() const;

 private:
  SharedBatch(std::string folder, batch::SharedWork::Worker worker)
      : folder_(std::move(folder)), worker_(std::move(worker)) {}

  std::string folder_;
  batch::SharedWork::Worker worker_;
  std::optional<batch::SharedWork> work_;
  std::vector<batch::SharedWork::Piece> first_;
  std::unique_ptr<batch::Feeder> feeder_;
};

}  // namespace headroom::cli
