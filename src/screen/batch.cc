// SPDX-License-Identifier: Apache-2.0
#include "screen/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"
#include "report/batch_status.h"
#include "screen/accounts.h"

namespace headroom::screen {

namespace {

constexpr std::size_t kBarCells = 26, kSmallestBar = 8, kGap = 2;
constexpr std::size_t kMargin = 7;          // left of a strip: how long ago it begins
constexpr std::size_t kShortestStrip = 10;  // columns
constexpr std::size_t kWideRow = 72;        // so wide a row has room for a strip and readings
constexpr std::size_t kNarrow = 48;         // columns
constexpr std::size_t kMostTall = 3;        // more GPUs than that have a row each
constexpr std::size_t kRowsOfTasks = 2;
constexpr Nanos kMinute = 60 * kSecond;
constexpr std::string_view kNotLookedAt =
    "idle, cause not looked at yet";  // the ledger does so when the batch has ended

// Pieces of text side by side, in rows.
class Flow {
 public:
  Flow(Canvas& canvas, std::size_t row, std::size_t last, std::size_t column, std::size_t indent)
      : canvas_(canvas), row_(row), last_(last), column_(column), indent_(indent), empty_(true) {}
  // False: no room, and nothing was written. The first piece of a row is cut where it must be. `kept`: columns of the
  // last row that others need.
  bool put(const std::string& text, Style style, std::size_t kept = 0) {
    const std::size_t width = width_of(text, canvas_.look().utf8), begin = column_ + (empty_ ? 0 : kGap);
    if (!empty_ && begin + width + (row_ == last_ ? kept : 0) > canvas_.size().columns) {
      if (row_ == last_) return false;
      ++row_, column_ = indent_, empty_ = true;
      return put(text, style, kept);
    }
    column_ = canvas_.put(row_, begin, text, style);
    empty_ = false;
    return true;
  }
  [[nodiscard]] std::size_t next_row() const { return row_ + 1; }

 private:
  Canvas& canvas_;
  std::size_t row_, last_, column_, indent_;
  bool empty_;
};

// Ended, failed, running and the rest.
void put_progress_bar(Canvas& canvas, std::size_t row, const BatchProgress::Tasks& counts, std::size_t cells) {
  const auto share = [&](std::int64_t count) {
    const double of = counts.total > 0 ? static_cast<double>(count) / static_cast<double>(counts.total) : 1.0;
    return static_cast<std::size_t>(std::lround(std::clamp(of, 0.0, 1.0) * static_cast<double>(cells)));
  };
  const std::size_t ended = share(counts.ended());
  std::size_t well = std::min(ended, share(counts.ended() - counts.failed)),
              begun = share(counts.ended() + counts.running);
  if (counts.failed > 0 && ended > 0) well = std::min(well, ended - 1);  // one that failed is seen
  if (counts.running > 0) begun = std::max(begun, std::min(cells, ended + 1));
  struct Part {
    std::size_t end;
    Colour ink;
    const char *block, *ascii;
  };
  std::size_t at = 0;
  for (const Part& part : {Part{well, Colour::kGreen, "█", "#"}, Part{ended, Colour::kRed, "█", "#"},
                           Part{begun, Colour::kCyan, "▒", "+"}, Part{cells, Colour::kGrey, "░", "."}})
    for (; at < part.end; ++at) canvas.put(row, at, canvas.look().utf8 ? part.block : part.ascii, {.ink = part.ink});
}

std::size_t put_head(Canvas& canvas, const BatchProgress& progress) {
  auto parts = report::progress_parts(progress);
  if (!progress.left && !progress.draining && progress.tasks.running > 0)
    parts.push_back({"how long it takes is not known yet"});
  const std::size_t columns = canvas.size().columns;
  std::size_t width = 0;
  for (const auto& part : parts) width += kGap + width_of(part.text);
  const std::size_t room = columns - std::min(columns, width);
  const std::size_t cells = room < kSmallestBar ? 0 : std::min(room, kBarCells);  // the words come first
  put_progress_bar(canvas, 0, progress.tasks, cells);
  Flow flow(canvas, 0, std::min<std::size_t>(1, canvas.size().rows - 1), cells > 0 ? cells + kGap : 0, 0);
  for (const auto& part : parts) (void)flow.put(part.text, part.problem ? kAlarm : Style{});
  return flow.next_row();
}

// What a GPU's title has beside its name, as far as there is room.
std::string readings_of(const Canvas& canvas, const BatchProgress::Gpu& gpu, std::size_t from, std::size_t room) {
  const bool narrow = canvas.size().columns < kNarrow;
  BatchProgress::Gpu shown = gpu;
  if (narrow) shown.used_bytes.reset();  // power and temperature are worth more there
  auto parts = report::gpu_parts(shown);
  parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(from));
  const std::string_view gap = narrow ? " " : "  ";
  while (parts.size() > 1 && width_of(join(parts, gap)) > room) parts.pop_back();
  std::string text = join(parts, gap);
  if (const auto degree = text.find("°"); degree != std::string::npos && !canvas.look().utf8) text.erase(degree, 2);
  return text;
}

void put_title(Canvas& canvas, std::size_t row, const BatchProgress::Gpu& gpu) {
  const std::size_t begin = canvas.put(row, 0, fmt::format("GPU {}", gpu.gpu.index), kBold) + kGap;
  canvas.put(row, begin,
             readings_of(canvas, gpu, canvas.size().columns < kNarrow ? 2 : 1,
                         canvas.size().columns - std::min(canvas.size().columns, begin)),
             gpu.usable ? Style{} : kAlarm);
}

// How long ago a strip's left edge was, and the strip.
void put_trail(Canvas& canvas, std::size_t row, const view::BatchTrail& trail, std::size_t gpu) {
  const std::size_t room = canvas.size().columns - kMargin;
  const view::Strip strip = trail.strip(gpu, room);
  const Nanos span = trail.column(room) * static_cast<Nanos>(strip.bins.size());
  const std::string begin =
      span < kMinute ? fmt::format("-{} s", span / kSecond) : fmt::format("-{}", human_duration(span));
  canvas.put_right(row, kMargin - 1, begin, kFaint);
  put_strip(canvas, row, kMargin, 1, strip);
}

// All in one row: a strip, then readings.
void put_gpu_row(Canvas& canvas, std::size_t row, const BatchProgress::Gpu& gpu, const view::BatchTrail& trail,
                 std::size_t position) {
  const std::size_t columns = canvas.size().columns, begin = 4, strip = (columns - begin) / 2 - kGap;
  canvas.put(row, 0, fmt::format("{}", gpu.gpu.index), kBold);
  put_strip(canvas, row, begin, 1, trail.strip(position, strip));
  canvas.put(row, begin + strip + kGap, readings_of(canvas, gpu, 2, columns - begin - strip - kGap),
             gpu.usable ? Style{} : kAlarm);
}

std::size_t put_running(Canvas& canvas, std::size_t row, std::size_t last, const BatchProgress& progress) {
  const auto& running = progress.running;
  if (running.empty() || row > last) return row;
  Flow flow(canvas, row, std::min(last, row + kRowsOfTasks - 1), canvas.put(row, 0, "running:", kFaint) + 1, kGap);
  for (std::size_t i = 0; i < running.size(); ++i) {
    const std::size_t left = running.size() - i;  // with this one
    const std::string more = fmt::format("and {} more", left);
    if (flow.put(fmt::format("{} {}", running[i].task, human_duration(running[i].elapsed)), {},
                 left > 1 ? kGap + more.size() : 0))
      continue;
    (void)flow.put(more, kFaint);
    break;
  }
  return flow.next_row();
}

std::vector<view::Share> sum_of(const BatchProgress& progress, const view::BatchTrail& trail, std::size_t columns) {
  std::vector<Nanos> sums(kAccounts.size());
  for (std::size_t gpu = 0; gpu < progress.gpus.size(); ++gpu)
    for (const auto& bin : trail.strip(gpu, columns).bins)
      for (const view::Share& share : bin) sums[static_cast<std::size_t>(share.account)] += share.ns;
  std::vector<view::Share> shares;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = sums[static_cast<std::size_t>(account.id)]; ns > 0) shares.push_back({account.id, ns});
  return shares;
}

bool any_observed(const view::BatchTrail& trail, std::size_t gpus) {
  for (std::size_t gpu = 0; gpu < gpus; ++gpu)
    if (trail.observed(gpu)) return true;
  return false;
}

// Rows from `row` up to `last`.
std::size_t put_gpus(Canvas& canvas, std::size_t row, std::size_t last, const BatchProgress& progress,
                     const view::BatchTrail& trail) {
  const std::size_t n = progress.gpus.size(), rows = last + 1 - std::min(last + 1, row),
                    columns = canvas.size().columns;
  if (n == 0 || rows == 0) return row;
  const bool observed = columns >= kMargin + kShortestStrip && any_observed(trail, n);
  const bool tall = observed && n <= kMostTall && rows >= 2 * n + 1;
  const bool wide = observed && !tall && columns >= kWideRow && rows >= n + 1;
  const std::size_t shown = n <= rows ? n : rows - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    if (wide) {
      put_gpu_row(canvas, row++, progress.gpus[i], trail, i);
      continue;
    }
    put_title(canvas, row++, progress.gpus[i]);
    if (tall) put_trail(canvas, row++, trail, i);
  }
  if (shown < n) canvas.put(row++, 0, fmt::format("and {}", count_of(n - shown, "more GPU")), kFaint);
  if (tall || wide)
    put_legend(canvas, row++, sum_of(progress, trail, tall ? columns - kMargin : (columns - 4) / 2 - kGap),
               kNotLookedAt);
  return row;
}

}  // namespace

std::vector<Line> batch_picture(const BatchProgress& progress, const view::BatchTrail& trail, Size most, Look look) {
  const Size size{std::max<std::size_t>(most.columns, kMargin + 1), std::max<std::size_t>(most.rows, 1)};
  Canvas canvas(size, look);
  std::size_t row = put_head(canvas, progress);
  const std::size_t for_tasks = progress.running.empty() ? 0 : std::min(kRowsOfTasks, (size.rows - row) / 3);
  const std::size_t end = size.rows - for_tasks;
  if (progress.gpus.empty() && row < end)
    canvas.put(row++, 0,
               fmt::format("{} running, {} waiting", progress.tasks.running,
                           progress.tasks.waiting + progress.tasks.ready + progress.tasks.backing_off));
  if (end > 0 && row < end) row = put_gpus(canvas, row, end - 1, progress, trail);
  row = put_running(canvas, row, size.rows - 1, progress);
  std::vector<Line> lines = std::move(canvas).take().lines;
  lines.resize(std::min(row, size.rows));
  return lines;
}

}  // namespace headroom::screen
