// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "cli/terminal.h"

namespace headroom::cli {

namespace {
constexpr Nanos kLineEvery = 30 * kSecond;
constexpr std::size_t kBarCells = 26, kSmallestBar = 8;

constexpr double kGib = 1024.0 * 1024 * 1024;
}  // namespace

std::string progress_words(const BatchProgress& progress) {
  const auto& counts = progress.tasks;
  const double share = counts.total > 0 ? static_cast<double>(counts.ended()) / static_cast<double>(counts.total) : 1.0;
  std::string text = fmt::format("{}/{}  {}  {}", counts.ended(), counts.total, human_percent(share),
                                 human_duration(progress.elapsed));
  if (counts.failed > 0) text += fmt::format("  {} failed", counts.failed);
  if (progress.draining)
    text += fmt::format("  ending, {} running", counts.running);
  else if (progress.left)
    text += fmt::format("  about {} left ({} to {})", human_duration(*progress.left),
                        human_duration(*progress.left_low), human_duration(*progress.left_high));
  return text;
}

std::string gpu_words(const BatchProgress::Gpu& gpu, std::size_t width) {
  std::string_view model = gpu.gpu.model;
  if (constexpr std::string_view kMaker = "NVIDIA "; model.starts_with(kMaker)) model.remove_prefix(kMaker.size());
  std::vector<std::string> parts{fmt::format("GPU {}  {}  {} running", gpu.gpu.index, model, gpu.running)};
  if (!gpu.usable) parts.emplace_back("out of use");
  if (gpu.used_bytes)
    parts.push_back(fmt::format("{:.1f}/{:.3g} GiB", static_cast<double>(*gpu.used_bytes) / kGib,
                                static_cast<double>(gpu.gpu.memory_bytes) / kGib));
  if (gpu.util_ratio) parts.push_back("gpu " + human_percent(*gpu.util_ratio));
  if (gpu.tasks_per_second > 0) parts.push_back(fmt::format("{:.2g} tasks/s", gpu.tasks_per_second));
  if (gpu.tasks_per_second > 0 && gpu.alone_tasks_per_second)
    parts.push_back(fmt::format("(1 alone: {:.2g})", *gpu.alone_tasks_per_second));
  while (parts.size() > 1 && report::display_width(join(parts, "  ")) > width) parts.pop_back();
  return join(parts, "  ");
}

BatchView::BatchView(bool quiet)
    : layout_(text_options(STDERR_FILENO)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      quiet_(quiet),
      screen_(STDERR_FILENO),
      out_(STDOUT_FILENO) {}

void BatchView::clear() {
  if (lines_ == 0) return;
  screen_.put(fmt::format("\x1b[{}A\x1b[J", lines_));
  lines_ = 0;
}

void BatchView::note(batch::MessageKind kind, const std::string& text) {
  if (quiet_ && kind == batch::MessageKind::kFact) return;
  clear();
  screen_.put(fmt::format("{} {}\n", kind == batch::MessageKind::kProblem ? "!" : "-", text));
}

std::string BatchView::picture(const BatchProgress& progress) const {
  const auto& counts = progress.tasks;
  const double share = counts.total > 0 ? static_cast<double>(counts.ended()) / static_cast<double>(counts.total) : 1.0;
  const std::size_t width = std::max<std::size_t>(text_options(STDERR_FILENO).width, 20) - 1;  // it may be resized
  const std::string words = progress_words(progress);
  const std::size_t room = width - std::min(width, report::display_width(words) + 2);
  const std::size_t cells = room < kSmallestBar ? 0 : std::min(room, kBarCells);  // the words come first
  const std::string bar = cells > 0 ? report::bar(share, cells, layout_.utf8) + "  " : "";
  std::string text = report::pad_right(bar + words, width) + "\n";
  for (const auto& gpu : progress.gpus) text += report::pad_right(gpu_words(gpu, width), width) + "\n";
  if (progress.gpus.empty())
    text += report::pad_right(fmt::format("{} running, {} waiting", counts.running,
                                          counts.waiting + counts.ready + counts.backing_off),
                              width) +
            "\n";
  return text;
}

void BatchView::show(const BatchProgress& progress) {
  if (quiet_) return;
  if (!terminal_) {
    if (last_line_ == 0) last_line_ = boottime_now();  // what lasts a moment needs no line
    if (boottime_now() - last_line_ < kLineEvery) return;
    last_line_ = boottime_now();
    screen_.put(fmt::format("- {}\n", progress_words(progress)));
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
