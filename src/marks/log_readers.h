// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "marks/output_reader.h"

namespace headroom::marks {

// What many jobs print that come and go while one recording is made. Together they are read no faster than so many
// bytes in a look.
class LogReaders {
 public:
  static constexpr std::size_t kBytesOfAll = 256 << 10;

  // These three from any thread. end: what is there at the next look is the last of it.
  void add(std::uint64_t job, OutputReaderOptions options);
  void end(std::uint64_t job);
  void end_all();
  void read(Nanos at, RecordingSink& sink);

 private:
  std::map<std::uint64_t, std::unique_ptr<OutputReader>> readers_;  // of the thread that reads
  std::mutex mutex_;                                                // guards what follows
  std::vector<std::pair<std::uint64_t, std::unique_ptr<OutputReader>>> fresh_;
  std::vector<std::uint64_t> ended_;
  bool all_end_ = false;
};

[[nodiscard]] std::unique_ptr<Reader> reader_of(std::shared_ptr<LogReaders> readers);

}  // namespace headroom::marks
