// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <optional>
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
  // The batch has ended, and what its journal could take is in there. What failed just before it was told to end, or
  // since, goes back like what was not begun: Slurm and service managers signal tasks as well as whoever started them.
  void put_back(bool told_to_end);

 private:
  enum class Over { kNo, kYes };
  void hear_whether_to_stop();
  void hand_over(Over over);
  void ask_for_more(Batch& batch);
  void trouble(const Error& error);
  [[nodiscard]] SharedWork::Ends ends_of(const std::string& piece) const;

  struct Held {
    std::vector<std::string> tasks;
    std::size_t left = 0;            // that have not ended
    std::optional<Nanos> failed_at;  // monotonic; the last of them
  };
  [[nodiscard]] bool may_be_stopped(const Held& held, Over over) const;

  SharedWork& work_;
  Journal& journal_;
  std::size_t enough_;
  Say say_;
  std::map<std::string, Held> held_;             // by piece
  std::map<std::string, std::string> piece_of_;  // by task, of those that have not ended
  std::map<std::string, TaskState> states_;      // of those that have
  Nanos next_beat_ = 0, next_ask_ = 0, next_stop_ = 0;
  std::optional<Nanos> ends_since_;  // monotonic; the batch was told to
  bool open_ = true, told_to_stop_ = false;
  std::string trouble_;
};

}  // namespace headroom::batch
