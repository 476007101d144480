// SPDX-License-Identifier: Apache-2.0
#include "marks/log_readers.h"

#include <algorithm>

namespace headroom::marks {

namespace {

class Shared final : public Reader {
 public:
  explicit Shared(std::shared_ptr<LogReaders> readers) : readers_(std::move(readers)) {}
  void read(Nanos at, RecordingSink& sink) override { readers_->read(at, sink); }

 private:
  std::shared_ptr<LogReaders> readers_;
};

}  // namespace

void LogReaders::add(std::uint64_t job, OutputReaderOptions options) {
  auto reader = std::make_unique<OutputReader>(std::move(options));
  const std::lock_guard lock(mutex_);
  fresh_.emplace_back(job, std::move(reader));
}

void LogReaders::end(std::uint64_t job) {
  const std::lock_guard lock(mutex_);
  ended_.push_back(job);
}

void LogReaders::end_all() {
  const std::lock_guard lock(mutex_);
  all_end_ = true;
}

void LogReaders::read(Nanos at, RecordingSink& sink) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [job, reader] : fresh_) readers_.emplace(job, std::move(reader));
    fresh_.clear();
    for (const auto& [job, reader] : readers_)
      if (all_end_ || std::find(ended_.begin(), ended_.end(), job) != ended_.end()) reader->end_soon();
    ended_.clear();
  }
  constexpr std::size_t kLeast = 4 << 10;
  for (const auto& [job, reader] : readers_) {
    reader->look_at_most(std::clamp(kBytesOfAll / readers_.size(), kLeast, kBytesPerLook));
    reader->read(at, sink);
  }
  std::erase_if(readers_, [](const auto& one) { return one.second->ended(); });
}

std::unique_ptr<Reader> reader_of(std::shared_ptr<LogReaders> readers) {
  return std::make_unique<Shared>(std::move(readers));
}

}  // namespace headroom::marks
