// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_box.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>

#include "cli/output.h"
#include "cli/top_recording.h"

namespace headroom::cli {

ServedBox::ServedBox(bool keep)
    : thread_([this, keep] {
        try {
          watch(keep);
        } catch (const std::exception& error) {  // what is served goes on
          say(fmt::format("this machine is no longer watched: {}", error.what()), "start headroom serve anew");
        }
      }) {}

ServedBox::~ServedBox() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

ServedBox::Shown ServedBox::shown() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

bool ServedBox::pause(Nanos time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::nanoseconds(time), [this] { return ending_; });
}

void ServedBox::show(const WatchedRecording& watched) {
  const std::lock_guard lock(mutex_);
  shown_ = {watched.path(), watched.name()};
}

// Who is on the GPUs is looked for in the last minute, so often that it costs little beside the recording.
void ServedBox::watch(bool keep) {
  constexpr Nanos kLooks = 5 * kSecond, kCostParts = 200;
  const screen::State last_minute;
  auto watched = WatchedRecording::open_box(
      {.keep = keep, .stays = true, .pid = {}, .pause = [this](Nanos time) { return pause(time); }}, {});
  if (!watched) {
    if (pause(0)) say(fmt::format("this machine is not watched: {}", watched.error().what), watched.error().hint);
    return;
  }
  std::string trouble;
  do {
    show(*watched);
    watched->explain_window(last_minute);
    if (watched->trouble() != trouble) {
      trouble = watched->trouble();
      if (!trouble.empty()) say(trouble);
    }
    if (!pause(std::max(kLooks, kCostParts * watched->explaining_cost()))) return;
    (void)watched->look_again();
    (void)watched->go_on_with_next();
  } while (true);
}

}  // namespace headroom::cli
