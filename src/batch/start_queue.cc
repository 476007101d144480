// SPDX-License-Identifier: Apache-2.0
#include "batch/start_queue.h"

#include <utility>

namespace headroom::batch {

namespace {
constexpr Nanos kTryAgain = kSecond;  // after the journal could not be written, or there was no room
}

std::vector<AttemptId> StartQueue::take_unwanted(bool batch_ends) {
  std::vector<AttemptId> unwanted;
  std::erase_if(prepared_, [&](AttemptId id) {
    const BookedAttempt* attempt = parts_.book.find(id);
    if (attempt != nullptr && !attempt->evidence.stop_reason && !batch_ends) return false;
    unwanted.push_back(id);
    return true;
  });
  return unwanted;
}

void StartQueue::run(std::int64_t not_started) {
  due_.reset();
  if (const auto written = parts_.journal.commit(); !written) {
    if (!std::exchange(journal_fails_, true))
      parts_.messages.problem(words::journal_fails(written.error().what, parts_.journal.results_pending()));
    due_ = parts_.clock.boottime() + kTryAgain;
    return;
  }
  if (std::exchange(journal_fails_, false)) parts_.messages.fact("the journal can be written again");
  if (prepared_.empty()) return;
  if (!room(not_started)) {
    due_ = parts_.clock.boottime() + kTryAgain;
    return;
  }
  std::vector<Launch> launches;
  for (const AttemptId id : std::exchange(prepared_, {})) {
    BookedAttempt& attempt = *parts_.book.find(id);
    attempt.stage = Stage::kStarting;
    attempt.start = parts_.clock.boottime();
    launches.push_back({.attempt = id,
                        .argv = attempt.facts.argv,
                        .environment = attempt.facts.environment,
                        .working_directory = attempt.facts.working_directory,
                        .log_path = attempt.facts.log_path});
  }
  parts_.executor.start(std::move(launches));
}

void StartQueue::no_room_for_now() { no_room_until_ = parts_.clock.boottime() + kTryAgain; }

// On a full disk one task after the other would fail at its first line of output.
bool StartQueue::room(std::int64_t not_started) {
  const bool room = parts_.clock.boottime() >= no_room_until_ && parts_.executor.has_room();
  if (!room && !std::exchange(no_room_, true))
    parts_.messages.problem(words::disk_full(parts_.folder, kRoomForLogs, parts_.book.count(Stage::kRunning),
                                             not_started + static_cast<std::int64_t>(prepared_.size())));
  if (room && std::exchange(no_room_, false)) parts_.messages.fact("there is room on the disk again");
  return room;
}

}  // namespace headroom::batch
