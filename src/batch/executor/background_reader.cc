// SPDX-License-Identifier: Apache-2.0
#include "batch/executor/background_reader.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace headroom::batch {

namespace {

constexpr int kMostLeftBehind = 8;  // threads that hang in a reading

struct Job {
  AttemptId attempt = 0;
  ReadOutput read;
  Nanos asked = 0;
};

}  // namespace

struct BackgroundReader::Shared {
  std::mutex mutex;  // guards everything below but `ready`, which is called under it
  std::condition_variable changed;
  std::deque<Job> waiting;
  std::vector<OutputRead> done;
  std::optional<AttemptId> reading;  // by the thread of this generation
  Nanos since = 0;
  std::uint64_t generation = 0;
  int left_behind = 0;
  bool running = false, closing = false;
  std::function<void()> ready;

  void run(std::uint64_t own) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closing || !waiting.empty(); });
      if (closing) return;
      const Job job = std::move(waiting.front());
      waiting.pop_front();
      reading = job.attempt;
      since = boottime_now();
      lock.unlock();
      OutputFacts facts = job.read();
      lock.lock();
      if (own != generation) {  // given up meanwhile
        --left_behind;
        return;
      }
      reading.reset();
      done.push_back({.attempt = job.attempt, .facts = std::move(facts)});
      if (ready) ready();
    }
  }
};

BackgroundReader::BackgroundReader(Nanos budget, std::function<void()> ready)
    : budget_(budget), shared_(std::make_shared<Shared>()) {
  shared_->ready = std::move(ready);
}

BackgroundReader::~BackgroundReader() {
  const std::lock_guard lock(shared_->mutex);
  shared_->closing = true;
  shared_->ready = nullptr;
  shared_->changed.notify_all();
}

// With the mutex held.
bool BackgroundReader::start_thread() {
  if (shared_->left_behind > kMostLeftBehind) return false;
  try {
    std::thread([shared = shared_, own = shared_->generation] { shared->run(own); }).detach();
  } catch (const std::system_error&) {  // no more threads for this user
    return false;
  }
  return shared_->running = true;
}

void BackgroundReader::read(AttemptId attempt, ReadOutput read) {
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.push_back({.attempt = attempt, .read = std::move(read), .asked = boottime_now()});
  if (shared_->running || start_thread())
    shared_->changed.notify_one();
  else if (shared_->left_behind > kMostLeftBehind)
    give_up_waiting(0);
}

// With the mutex held: what has waited for a thread for so long.
void BackgroundReader::give_up_waiting(Nanos patience) {
  const Nanos now = boottime_now();
  std::deque<Job>& waiting = shared_->waiting;
  while (!waiting.empty() && now - waiting.front().asked >= patience) {
    shared_->done.push_back({.attempt = waiting.front().attempt, .given_up = true});
    waiting.pop_front();
  }
}

void BackgroundReader::give_up_overdue() {
  Shared& shared = *shared_;
  // Where this user may have no more threads, a task that ends makes room for one.
  if (!shared.running && !shared.waiting.empty() && !start_thread()) give_up_waiting(budget_);
  if (!shared.reading || boottime_now() - shared.since < budget_) return;
  shared.done.push_back({.attempt = *shared.reading, .given_up = true});
  shared.reading.reset();
  ++shared.generation;
  ++shared.left_behind;
  shared.running = false;
  if (!shared.waiting.empty() && !start_thread()) give_up_waiting(0);
}

std::vector<OutputRead> BackgroundReader::take() {
  const std::lock_guard lock(shared_->mutex);
  give_up_overdue();
  return std::exchange(shared_->done, {});
}

}  // namespace headroom::batch
