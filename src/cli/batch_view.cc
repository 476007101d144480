// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/visible.h"
#include "cli/terminal.h"
#include "report/batch_status.h"
#include "report/palette.h"
#include "screen/batch.h"

namespace headroom::cli {

namespace {
constexpr Nanos kLineEvery = 30 * kSecond;
constexpr std::size_t kNarrowestLine = 20, kRowsOfOldTerminals = 24;
constexpr std::size_t kMostRepainted = 40;  // more of the terminal is for what happens
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

// Over what was painted before, row by row: what stays the same does not flicker.
void BatchView::paint(const BatchProgress& progress) {
  const std::size_t width =
      std::max<std::size_t>(text_options(STDERR_FILENO).width, kNarrowestLine);  // it may be resized
  const std::size_t rows = std::min(rows_of(STDERR_FILENO).value_or(kRowsOfOldTerminals), kMostRepainted);
  const auto lines = screen::batch_picture(progress, trail_, {width - 1, rows - std::min<std::size_t>(rows, 1)},
                                           {.colour = layout_.colour, .utf8 = layout_.utf8});
  std::string text = lines_ > 0 ? fmt::format("\r\x1b[{}A", lines_) : "\r";  // the terminal shows ^C at the cursor
  for (const screen::Line& line : lines) {
    std::string row = screen::text_of({line}, layout_.colour);
    if (row.ends_with('\n')) row.pop_back();
    text += row + "\x1b[K\n";
  }
  screen_.put(text + "\x1b[J");
  lines_ = lines.size();
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
  trail_.add(progress);
  if (screen_.waiting()) return;  // the terminal is stopped: no use in painting over what is not there yet
  paint(progress);
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
