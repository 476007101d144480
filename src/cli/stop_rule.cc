// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_rule.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <map>
#include <mutex>
#include <span>

namespace headroom::cli {

namespace {

// As in analyze/work.cc: marks in the code, then NVTX, then what the job prints.
constexpr std::array<std::string_view, 3> kMostTrustedFirst{"marks", "nvtx", "output"};

// Passes everything on, and looks at steps.
class StepSink final : public RecordingSink {
 public:
  StepSink(std::unique_ptr<RecordingSink> next, std::function<void(std::int64_t)> counted)
      : next_(std::move(next)), counted_(std::move(counted)) {}

  SourceId add_source(const Source& source) override {
    const SourceId id = next_->add_source(source);
    const auto via = source.attrs.find("via");
    if (source.kind != SourceKind::kMarks || via == source.attrs.end()) return id;
    const std::lock_guard lock(mutex_);
    for (std::size_t trust = 0; trust < kMostTrustedFirst.size(); ++trust)
      if (via->second == kMostTrustedFirst[trust]) trust_[id] = trust;
    return id;
  }
  void add_row(SourceId source, Nanos at, std::span<const Cell> cells) override {
    next_->add_row(source, at, cells);
    for (const Cell& cell : cells)
      if (cell.metric == Metric::kSteps && !cell.absent) take(source, cell.value);
  }
  TextId intern(std::string_view text) override { return next_->intern(text); }
  ListId intern_list(std::span<const TextId> texts) override { return next_->intern_list(texts); }
  void add_list_row(SourceId source, const ListRow& row) override { next_->add_list_row(source, row); }
  void add_event(const Event& event) override { next_->add_event(event); }
  void add_loss(const Loss& loss) override { next_->add_loss(loss); }
  void set_meta(const RecordingMeta& meta) override { next_->set_meta(meta); }

 private:
  void take(SourceId source, std::int64_t steps) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = trust_.find(source);
      if (found == trust_.end() || steps <= 0) return;
      if (found->second > best_ || (found->second == best_ && steps <= told_)) return;
      best_ = found->second;
      told_ = steps;
    }
    counted_(steps);
  }

  std::unique_ptr<RecordingSink> next_;
  std::function<void(std::int64_t)> counted_;
  std::mutex mutex_;  // sources with a thread of their own
  std::map<SourceId, std::size_t> trust_;
  std::size_t best_ = kMostTrustedFirst.size();
  std::int64_t told_ = 0;
};

}  // namespace

void declare_stop_rule(CLI::App& app, StopRule& rule) {
  constexpr const char* kHidden = "";
  app.add_option("--stop-warm-up", rule.warm_up)->check(CLI::NonNegativeNumber)->group(kHidden);
  app.add_option("--stop-steps", rule.steps)->check(CLI::NonNegativeNumber)->group(kHidden);
  app.add_option("--stop-time-ns", rule.time)->check(CLI::NonNegativeNumber)->group(kHidden);
}

std::vector<std::string> words_of(const StopRule& rule) {
  return {fmt::format("--stop-warm-up={}", rule.warm_up), fmt::format("--stop-steps={}", rule.steps),
          fmt::format("--stop-time-ns={}", rule.time)};
}

void watch_steps(SessionOptions& session, std::function<void(std::int64_t)> counted) {
  session.open_recording = [open = std::move(session.open_recording), counted]() -> Result<OpenRecording> {
    HR_TRY(OpenRecording recording, open());
    recording.sink = std::make_unique<StepSink>(std::move(recording.sink), counted);
    return recording;
  };
}

}  // namespace headroom::cli
