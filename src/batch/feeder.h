// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "batch/batch.h"
#include "batch/journal.h"
#include "batch/say.h"
#include "batch/shared_work.h"

namespace headroom::batch {

// Gives a batch that runs its tasks bit by bit, from work that several share: never more than it can begin soon, so
// that others are not left without. Once there is nothing to be had it asks no more, and the batch ends.
class Feeder {
 public:
  // `enough`: so many tasks that are ready are enough.
  Feeder(SharedWork& work, Journal& journal, std::size_t enough, Say say)
      : work_(work), journal_(journal), enough_(enough), say_(std::move(say)) {}

  void has(const SharedWork::Piece& piece);  // tasks that the batch was begun with
  void ended(const std::string& task, TaskState state);
  [[nodiscard]] bool more_may_come() const { return open_; }
  // Now and then: hands over what has ended and asks for more. True: the batch is to drain.
  [[nodiscard]] bool look(Batch& batch);
  // The batch has ended, and what its journal could take is in there.
  void put_back();

  struct Totals {
    std::size_t finished = 0, given_back = 0, twice = 0;  // pieces; twice: another worker had ended it, too
  };
  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  void hand_over();
  void ask_for_more(Batch& batch);
  void trouble(const Error& error);
  [[nodiscard]] SharedWork::Ends ends_of(const std::string& piece) const;

  struct Held {
    std::vector<std::string> tasks;
    std::size_t left = 0;  // that have not ended
  };
  SharedWork& work_;
  Journal& journal_;
  std::size_t enough_;
  Say say_;
  std::map<std::string, Held> held_;             // by piece
  std::map<std::string, std::string> piece_of_;  // by task, of those that have not ended
  std::map<std::string, TaskState> states_;      // of those that have
  Totals totals_;
  Nanos next_beat_ = 0;
  bool open_ = true, told_to_stop_ = false;
  std::string trouble_;
};

}  // namespace headroom::batch
