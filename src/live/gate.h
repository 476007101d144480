// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "base/time.h"
#include "model/recording.h"

namespace headroom {

// Passes everything on, one call at a time, until it is shut: what a reader that hung has to say afterwards is dropped.
class Gate final : public RecordingSink {
 public:
  void open(RecordingSink* sink) {
    const std::lock_guard lock(mutex_);
    sink_ = sink;
    for (const Event& event : early_) sink_->add_event(event);
    early_.clear();
  }
  // False if a call into the sink does not come back in time.
  [[nodiscard]] bool shut(Nanos patience) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    for (const Nanos until = monotonic_now() + patience; !lock && monotonic_now() < until; lock.try_lock())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!lock) return false;
    sink_ = nullptr;
    shut_ = true;
    return true;
  }

  SourceId add_source(const Source& source) override {
    const std::lock_guard lock(mutex_);
    return sink_ != nullptr ? sink_->add_source(source) : kNoSource;
  }
  void add_row(SourceId source, Nanos at, std::span<const Cell> cells) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr) sink_->add_row(source, at, cells);
  }
  TextId intern(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    return sink_ != nullptr ? sink_->intern(text) : kNoText;
  }
  ListId intern_list(std::span<const TextId> texts) override {
    const std::lock_guard lock(mutex_);
    return sink_ != nullptr ? sink_->intern_list(texts) : kNoList;
  }
  void add_list_row(SourceId source, const ListRow& row) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr) sink_->add_list_row(source, row);
  }
  void add_event(const Event& event) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr)
      sink_->add_event(event);
    else if (!shut_)
      early_.push_back(event);
  }
  void add_loss(const Loss& loss) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr) sink_->add_loss(loss);
  }
  void set_meta(const RecordingMeta& meta) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr) sink_->set_meta(meta);
  }

 private:
  std::mutex mutex_;
  RecordingSink* sink_ = nullptr;  // guarded, as is all below
  std::vector<Event> early_;       // from before it was opened
  bool shut_ = false;
};

}  // namespace headroom
