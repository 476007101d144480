// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/terminal.h"
#include "report/batch_status.h"
#include "report/palette.h"

namespace headroom::cli {

namespace {
constexpr Nanos kLineEvery = 30 * kSecond;
constexpr std::size_t kBarCells = 26, kSmallestBar = 8;

}  // namespace

BatchView::BatchView(bool quiet)
    : layout_(text_options(STDERR_FILENO)),
      terminal_(can_repaint(STDERR_FILENO)),
      quiet_(quiet),
      screen_(STDERR_FILENO),
      out_(STDOUT_FILENO) {}

void BatchView::clear() {
  if (lines_ == 0) return;
  screen_.put(fmt::format("\r\x1b[{}A\x1b[J", lines_));  // the terminal shows ^C where the cursor was
  lines_ = 0;
}

void BatchView::note(batch::MessageKind kind, const std::string& text) {
  if (quiet_ && kind == batch::MessageKind::kFact) return;
  clear();
  const bool problem = kind == batch::MessageKind::kProblem;
  std::string line = fmt::format("{} {}\n", problem ? "!" : "-", visible_lines(text));
  if (terminal_) line = report::wrap(text, text_options(STDERR_FILENO).width, problem ? "! " : "- ", "  ");
  screen_.put(problem ? report::warning(line, layout_) : line);
}

std::string BatchView::picture(const BatchProgress& progress) const {
  const auto& counts = progress.tasks;
  const std::size_t width = std::max<std::size_t>(text_options(STDERR_FILENO).width, 20) - 1;  // it may be resized
  const std::string words = report::progress_words(progress);
  const std::size_t room = width - std::min(width, report::display_width(words) + 2);
  const std::size_t cells = room < kSmallestBar ? 0 : std::min(room, kBarCells);  // the words come first
  const std::string bar = cells > 0 ? report::progress_bar(counts, cells, layout_.utf8) + "  " : "";
  std::string text = report::pad_right(bar + words, width) + "\n";
  for (const auto& gpu : progress.gpus) text += report::pad_right(report::gpu_words(gpu, width), width) + "\n";
  if (progress.gpus.empty())
    text += report::pad_right(fmt::format("{} running, {} waiting", counts.running,
                                          counts.waiting + counts.ready + counts.backing_off),
                              width) +
            "\n";
  if (const std::string running = report::running_words(progress, width); !running.empty())
    text += report::pad_right(running, width) + "\n";
  return text;
}

void BatchView::show(const BatchProgress& progress) {
  if (quiet_) return;
  if (!terminal_) {
    if (last_line_ == 0) last_line_ = boottime_now();  // what lasts a moment needs no line
    if (boottime_now() - last_line_ < kLineEvery) return;
    last_line_ = boottime_now();
    screen_.put(fmt::format("- {}\n", report::progress_words(progress)));
    return;
  }
  if (screen_.waiting()) return;  // the terminal is stopped: no use in painting over what is not there yet
  const std::string text = picture(progress);
  clear();
  screen_.put(text);
  lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void BatchView::output(const std::string& lines) {
  if (!screen_.waiting()) {  // both may be one terminal: first the picture goes, then the lines come
    clear();
    screen_.flush();
  }
  out_.put(lines);
}

void BatchView::finish() {
  clear();
  screen_.flush();
  out_.flush();
}

}  // namespace headroom::cli
