// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/config.h"
#include "cli/environment.h"
#include "cli/output.h"

namespace headroom::cli {

namespace {

std::string text_of(const char* name) { return environment(name).value_or(""); }

// The first of these that is set decides, as in setlocale(3).
bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = lower(text_of(name));
    if (!value.empty()) return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

report::TextOptions text_options(int fd) {
  report::TextOptions options;
  winsize size{};
  const bool terminal = ::isatty(fd) != 0;
  if (config() && config()->width)
    options.width = *config()->width;
  else if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.width = size.ws_col;
  else if (const auto columns = parse_number<std::size_t>(text_of("COLUMNS")))
    options.width = *columns;
  options.colour = terminal && text_of("TERM") != "dumb";
  if (config() && config()->colour) options.colour = *config()->colour;
  if (!text_of("NO_COLOR").empty()) options.colour = false;
  options.utf8 = utf8_locale();
  return options;
}

std::optional<std::size_t> rows_of(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return std::nullopt;
  return size.ws_row;
}

bool can_repaint(int fd) { return ::isatty(fd) != 0 && text_of("TERM") != "dumb"; }

namespace {
constexpr std::size_t kKept = 1 << 20;
constexpr std::chrono::seconds kWritePatience{1};
}  // namespace

// Shared with the writing thread, which is left behind where the terminal never takes what it was given.
struct Screen::State {
  int fd = -1;
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  std::size_t left_out = 0;
  bool writing = false, closing = false;

  void write_on() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return closing || !text.empty(); });
      if (text.empty()) return;
      std::string now;
      now.swap(text);
      if (left_out > 0) now += fmt::format("- {} bytes were left out here: nobody read on\n", left_out);
      left_out = 0;
      writing = true;
      lock.unlock();
      if (fd == STDOUT_FILENO)
        cli::put(now);
      else
        (void)write_all(fd, now);  // a terminal that is gone takes nothing, and nothing can be said about it
      lock.lock();
      writing = false;
      changed.notify_all();
    }
  }
};

Screen::Screen(int fd) : state_(std::make_shared<State>()) {
  state_->fd = fd;
  std::thread([state = state_] { state->write_on(); }).detach();
}

Screen::~Screen() {
  flush();
  const std::lock_guard lock(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
}

void Screen::put(std::string text) {
  const std::lock_guard lock(state_->mutex);
  if (state_->text.size() + text.size() > kKept) {
    state_->left_out += text.size();
    return;
  }
  state_->text += text;
  state_->changed.notify_all();
}

bool Screen::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->writing || !state_->text.empty();
}

void Screen::flush() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, kWritePatience, [this] { return !state_->writing && state_->text.empty(); });
}

}  // namespace headroom::cli
