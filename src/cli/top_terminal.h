// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "live/signals.h"
#include "screen/scene.h"

namespace headroom::cli {

// A terminal that is painted as a whole, by ncurses. While there is one, nothing else writes to standard output. It is
// given back as it was, however this ends but by kill -9; SIGTSTP and SIGCONT work.
class Terminal {
 public:
  // What the terminal must be able to do and cannot is an error that says so.
  [[nodiscard]] static Result<std::unique_ptr<Terminal>> open(screen::Look wanted);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] screen::Size size() const;
  [[nodiscard]] screen::Look look() const { return look_; }
  void draw(screen::Picture picture);
  void draw_head(std::vector<screen::Line> lines);  // the first rows; the others stay

  enum class Event { kNothing, kKey, kResized, kEnded };  // kEnded: by a signal, or the terminal is gone
  // The next event within that time.
  [[nodiscard]] Event wait(Nanos time, const Signals& signals, screen::Key& key);

 private:
  Terminal() = default;
  void put(int row, int column, const std::string& text, const screen::Style& style);
  void put_line(std::size_t row, const screen::Line& line);
  [[nodiscard]] int pair_of(screen::Colour ink, screen::Colour ground);
  [[nodiscard]] bool follow_size();
  void paint_all();
  [[nodiscard]] Event next_event(screen::Key& key);
  [[nodiscard]] Event mouse_event(screen::Key& key) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
  screen::Look look_;
  screen::Picture painted_;
};

}  // namespace headroom::cli
