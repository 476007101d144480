// SPDX-License-Identifier: Apache-2.0
#include "batch/start_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human.h"

namespace headroom::batch {

namespace {
constexpr Nanos kTryAgain = kSecond;  // after the journal could not be written, or there was no room
constexpr Nanos kFirstPause = kSecond, kLongestPause = 30 * kSecond;  // after a start was refused
constexpr Nanos kTellAgain = 600 * kSecond;
}  // namespace

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
  not_started += static_cast<std::int64_t>(prepared_.size());
  if (!room(not_started)) {
    due_ = parts_.clock.boottime() + kTryAgain;
    return;
  }
  tell_refusal(not_started);
  if (parts_.clock.boottime() < refused_.until) {
    due_ = refused_.until;
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

void StartQueue::refused(const std::string& why) {
  const Nanos now = parts_.clock.boottime();
  if (now - refused_.last > kTellAgain) refused_.told = false;
  refused_.last = now;
  if (now < refused_.until) return;  // with another, at once
  refused_.why = why;
  // An end before its time may have made room; that it did not is no reason to wait for twice as long.
  if (now - refused_.since >= refused_.pause) {
    refused_.pause = std::clamp(2 * refused_.pause, kFirstPause, kLongestPause);
    refused_.since = now;
  }
  refused_.until = now + refused_.pause;
}

void StartQueue::started() { refused_.pause = 0; }

void StartQueue::ended() { refused_.until = 0; }

std::string StartQueue::why_waiting() const {
  if (prepared_.empty()) return "";
  if (journal_fails_) return "until the journal can be written";
  if (no_room_) return fmt::format("until there is room on the disk of {}", parts_.folder);
  return parts_.clock.boottime() < refused_.until ? "until this machine lets it start" : "";
}

void StartQueue::tell_refusal(std::int64_t not_started) {
  if (refused_.why.empty() || std::exchange(refused_.told, true)) return;
  parts_.messages.problem(words::cannot_start(refused_.why, parts_.book.count(Stage::kRunning), not_started));
}

// On a full disk one task after the other would fail at its first line of output.
bool StartQueue::room(std::int64_t not_started) {
  const Room room = parts_.executor.room();
  if (room == Room::kNoFolder) {
    if (!std::exchange(folder_removed_, true)) parts_.messages.problem(words::folder_removed(parts_.folder));
    return false;
  }
  if (room != Room::kEnough && !std::exchange(no_room_, true))
    parts_.messages.problem(words::disk_full(
        parts_.folder,
        room == Room::kTooFewFiles ? fmt::format("{} files (inodes)", kFilesForLogs) : human_bytes(kRoomForLogs),
        parts_.book.count(Stage::kRunning), not_started));
  if (room == Room::kEnough && std::exchange(no_room_, false)) parts_.messages.fact("there is room on the disk again");
  return room == Room::kEnough;
}

}  // namespace headroom::batch
