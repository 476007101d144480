// SPDX-License-Identifier: Apache-2.0
#include "batch/feeder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "batch/add_tasks.h"

namespace headroom::batch {

void Feeder::has(const SharedWork::Piece& piece) {
  Held& held = held_[piece.name];
  for (const TaskSpec& task : piece.tasks) {
    held.tasks.push_back(task.name);
    if (states_.contains(task.name)) continue;  // it had succeeded here before
    ++held.left;
    piece_of_[task.name] = piece.name;
  }
}

void Feeder::ended(const std::string& task, TaskState state) {
  states_[task] = state;
  const auto piece = piece_of_.extract(task);
  if (!piece) return;
  Held& held = held_[piece.mapped()];
  --held.left;
  if (state != TaskState::kSucceeded) held.failed_at = monotonic_now();
}

// That a task was signalled together with its worker is known once the worker has heard of it.
bool Feeder::may_be_stopped(const Held& held, Over over) const {
  constexpr Nanos kSoon = 1 * kSecond;
  if (!held.failed_at) return false;
  if (ends_since_) return *held.failed_at > *ends_since_ - kSoon;
  return over == Over::kNo && monotonic_now() - *held.failed_at < kSoon;
}

SharedWork::Ends Feeder::ends_of(const std::string& piece) const {
  SharedWork::Ends ends;
  for (const std::string& task : held_.at(piece).tasks) {
    const auto state = states_.find(task);
    if (state != states_.end()) (state->second == TaskState::kSucceeded ? ends.succeeded : ends.failed).insert(task);
  }
  return ends;
}

bool Feeder::look(Batch& batch) {
  if (const Nanos now = boottime_now(); now >= next_beat_) {
    next_beat_ = now + kBeat;
    if (const auto done = work_.beat(); !done) trouble(done.error());
  }
  const bool ends = batch.progress().draining;
  if (ends) open_ = false;
  if (ends && !ends_since_) ends_since_ = monotonic_now();
  hand_over(Over::kNo);
  const bool told = told_to_stop_;
  if (boottime_now() >= next_stop_) hear_whether_to_stop();
  if (told_to_stop_) open_ = false;
  if (open_) ask_for_more(batch);
  return !ends && told_to_stop_ && !told;
}

// Workers may be hundreds, and the folder on a network: it is not asked at every look, but before each claim.
void Feeder::hear_whether_to_stop() {
  constexpr Nanos kBetween = 2 * kSecond;
  next_stop_ = boottime_now() + kBetween;
  told_to_stop_ = told_to_stop_ || work_.is_to_stop();
}

// What is not in the journal yet is not handed over: should this process die, it would be nowhere.
void Feeder::hand_over(Over over) {
  if (journal_.pending()) return;
  for (auto piece = held_.begin(); piece != held_.end();) {
    if (piece->second.left > 0 || may_be_stopped(piece->second, over)) {
      ++piece;
      continue;
    }
    const auto finished = work_.finish(piece->first, ends_of(piece->first));
    if (!finished) {
      trouble(finished.error());
      ++piece;
      continue;
    }
    if (!*finished)
      say_(
          fmt::format("another worker had taken over {} that ended here", count_of(piece->second.tasks.size(), "task")),
          "this one was not heard of for a while; both may have run what they hold");
    piece = held_.erase(piece);
  }
}

void Feeder::ask_for_more(Batch& batch) {
  if (boottime_now() < next_ask_) return;
  for (;;) {
    const auto tasks = batch.progress().tasks;
    if (static_cast<std::size_t>(tasks.ready + tasks.waiting) >= work_.ahead(enough_)) return;
    hear_whether_to_stop();
    if (told_to_stop_) {
      open_ = false;
      return;
    }
    auto piece = work_.claim();
    if (!piece) return trouble(piece.error());
    if (!*piece) {
      // What a worker had that may be over is worth waiting for: nobody else may come for it.
      open_ = work_.somebody_is_silent();
      next_ask_ = boottime_now() + work_.patience();
      return;
    }
    // A batch runs a task of a name once: what it had before is for another worker, or a later call.
    const bool had = std::any_of((*piece)->tasks.begin(), (*piece)->tasks.end(), [&](const TaskSpec& task) {
      return states_.contains(task.name) || piece_of_.contains(task.name);
    });
    if (had) {
      if (const auto left = work_.leave_to_others((*piece)->name); !left) return trouble(left.error());
      continue;
    }
    const auto added = add_tasks((*piece)->tasks, batch, journal_);
    if (!added) {
      trouble(added.error());
      (void)work_.give_back((*piece)->name, {});
      open_ = false;
      return;
    }
    has(**piece);
    hand_over(Over::kNo);
  }
}

void Feeder::put_back(bool told_to_end) {
  if (told_to_end && !ends_since_) ends_since_ = monotonic_now();
  hand_over(Over::kYes);
  for (const auto& [piece, held] : held_) {
    // Of what the journal could not take nobody would know the result.
    const auto done = work_.give_back(piece, journal_.pending() ? SharedWork::Ends{} : ends_of(piece));
    if (!done) trouble(done.error());
  }
  held_.clear();
  work_.leave();
}

// A file server that does not answer now may do so later: it is asked again, and people are told once.
void Feeder::trouble(const Error& error) {
  if (std::exchange(trouble_, error.what) != error.what) say_(error.what, error.hint);
}

}  // namespace headroom::batch
