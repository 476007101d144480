// SPDX-License-Identifier: Apache-2.0
// Recordings as nobody would write them, and yet well sealed: the input chooses one of a few jobs, and what of it is
// changed before it is written, and in the file. Whatever can be read can be explained and exported.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>

#include "base/sqlite.h"
#include "export/chrome.h"
#include "export/csv.h"
#include "export/jsonl.h"
#include "exposition/families.h"
#include "exposition/formats.h"
#include "model/events.h"
#include "record/reader.h"
#include "record/writer.h"
#include "tests/fuzz/explained.h"

namespace {

using namespace headroom;

// The input's bytes, as numbers; zeros when they have come to an end.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool empty() const { return size_ == 0; }
  std::uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : (byte() * std::size_t{256} + byte()) % limit; }
  std::int64_t number() {
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min(), kMax = std::numeric_limits<std::int64_t>::max();
    constexpr std::array<std::int64_t, 20> kNumbers{0,        1,        -1,        11,      12,      83,          255,
                                                    256,      10'000,   10'001,    -12'300, 1 << 20, kSecond * 5, -kMax,
                                                    kMax / 2, kMax - 1, 1LL << 53, kMax,    kMin,    kMin + 1};
    const std::uint8_t which = byte();
    return which < kNumbers.size() ? kNumbers[which] : static_cast<std::int64_t>(which) << (byte() % 56);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

constexpr int kRows = 40;

// Two GPUs; a job that waits, with a helper, contexts on the first GPU, and the host's counters.
Recording waiting_job() {
  MemorySink sink;
  const auto cell = [](Metric metric, std::int64_t value) { return Cell{metric, value, std::nullopt}; };
  std::array<SourceId, 2> gpus{};
  for (std::size_t i = 0; i < gpus.size(); ++i)
    gpus[i] =
        sink.add_source({SourceKind::kGpu, i == 0 ? "GPU-1" : "GPU-2", kNoSource, {{"index", i == 0 ? "0" : "1"}}});
  const SourceId job =
      sink.add_source({SourceKind::kProcess,
                       "7/1",
                       kNoSource,
                       {{"pid", "7"}, {"start_ns", "1000"}, {"in_job", "true"}, {"cmdline", "train"}}});
  const SourceId helper = sink.add_source(
      {SourceKind::kProcess, "8/2", job, {{"pid", "8"}, {"ppid", "7"}, {"start_ns", "2000"}, {"in_job", "true"}}});
  const SourceId context =
      sink.add_source({SourceKind::kGpuProcess, "GPU-1/7/1", gpus[0], {{"pid", "7"}, {"context", "compute"}}});
  const SourceId host = sink.add_source({SourceKind::kHost, "host", kNoSource, {{"cores", "8"}}});
  for (int i = 1; i <= kRows; ++i) {
    const Nanos at = i * kSecond;
    const bool busy = i % 8 >= 6;
    for (std::size_t g = 0; g < gpus.size(); ++g)
      sink.add_row(
          gpus[g], at,
          std::array{cell(Metric::kGpuUtil, g == 0 && busy ? 9000 : 0), cell(Metric::kMemoryUtil, busy ? 4000 : 0),
                     cell(Metric::kMemoryUsed, std::int64_t{8} << 30), cell(Metric::kPower, busy ? 280'000 : 60'000),
                     cell(Metric::kPowerLimit, 300'000), cell(Metric::kTemperature, 60), cell(Metric::kSmClock, 1700),
                     cell(Metric::kEventReasons, busy ? 4 : 1), cell(Metric::kComputeProcesses, g == 0 ? 1 : 0)});
    for (const SourceId process : {job, helper})
      sink.add_row(
          process, at,
          std::array{cell(Metric::kCpuUser, i * 100'000'000LL), cell(Metric::kCpuSystem, i * 10'000'000LL),
                     cell(Metric::kMainCpu, i * 90'000'000LL), cell(Metric::kRunDelay, i * 1'000'000LL),
                     cell(Metric::kProcessState, busy ? 'R' : 'S'), cell(Metric::kWaitChannel, busy ? 0 : 1 + i % 10),
                     cell(Metric::kReadBytes, i * 1'000'000LL), cell(Metric::kIoDelay, i * 50'000'000LL)});
    sink.add_row(context, at, std::array{cell(Metric::kProcessGpuMemory, std::int64_t{7} << 30)});
    sink.add_row(host, at,
                 std::array{cell(Metric::kHostCpuBusy, i * 1'000'000'000LL), cell(Metric::kPsiCpuSome, i * 1'000'000LL),
                            cell(Metric::kPsiIoSome, i * 100'000'000LL)});
  }
  sink.add_event(to_event(events::JobStart{"train", 7}, 1000));
  RecordingMeta meta;
  meta.origin = "run";
  meta.end = kRows * kSecond;
  meta.interval = kSecond;
  meta.job_pid = 7;
  meta.tiers = "NP";
  sink.set_meta(meta);
  return sink.take();
}

// The same machine under a batch of four attempts.
Recording batch() {
  Recording recording = waiting_job();
  recording.meta.origin = "batch";
  recording.events.clear();
  for (int i = 0; i < 4; ++i) {
    events::AttemptStart start{.task = i % 2 == 0 ? "a" : "b",
                               .group = "g",
                               .attempt = static_cast<AttemptId>(i + 1),
                               .number = 1,
                               .pid = 7 + i,
                               .gpus = {i % 2 == 0 ? "GPU-1" : "GPU-2"},
                               .slot = i};
    recording.events.push_back(to_event(events::QueueLength{4 - i}, i * 10 * kSecond));
    recording.events.push_back(to_event(start, i * 10 * kSecond + 1));
    events::AttemptEnd end;
    end.start = start;
    end.cpu_time = 3 * kSecond;
    end.outcome = i == 3 ? AttemptOutcome::kFailed : AttemptOutcome::kSucceeded;
    recording.events.push_back(to_event(end, (i + 1) * 10 * kSecond - 1));
  }
  return recording;
}

void change_attribute(Attrs& attrs, Choices& choices) {
  if (attrs.empty()) return;
  auto entry = std::next(attrs.begin(), static_cast<std::ptrdiff_t>(choices.below(attrs.size())));
  switch (choices.byte() % 4) {
    case 0:
      attrs.erase(entry);
      break;
    case 1:
      entry->second = std::string(1 + choices.byte(), '[');
      break;
    default:
      entry->second = fmt::format("{}", choices.number());
      break;
  }
}

void change(Recording& recording, Choices& choices) {
  const std::size_t which = choices.below(recording.tracks.size());
  Track& track = recording.tracks[which];
  const std::size_t row = choices.below(std::max<std::size_t>(1, track.at.size()));
  Column* column = track.columns.empty() ? nullptr : &track.columns[choices.below(track.columns.size())];
  switch (choices.byte() % 8) {
    case 0:
      if (column && row < column->values.size()) column->values[row] = choices.number();
      break;
    case 1:
      if (column) std::fill(column->values.begin(), column->values.end(), choices.number());
      break;
    case 2:
      if (row < track.at.size()) track.at[row] = choices.number();
      std::sort(track.at.begin(), track.at.end());
      break;
    case 3:
      change_attribute(recording.sources[which].attrs, choices);
      break;
    case 4:
      (choices.byte() % 3 == 0   ? recording.meta.interval
       : choices.byte() % 2 == 0 ? recording.meta.start
                                 : recording.meta.end) = choices.number();
      break;
    case 5:
      if (recording.events.empty()) break;
      if (Event& event = recording.events[choices.below(recording.events.size())]; choices.byte() % 2 == 0)
        event.at = choices.number();
      else
        change_attribute(event.attrs, choices);
      break;
    case 6:
      if (column) column->absent.assign(column->values.size(), choices.byte() % 12);
      break;
    default:
      recording.sources[which].kind = static_cast<SourceKind>(choices.byte() % 8);
      break;
  }
}

// What only SQL can do to a file. Statements that fail are no fault.
void change_file(const std::string& path, Choices& choices) {
  constexpr std::array<const char*, 14> kStatements{
      "UPDATE chunk SET n={0}",
      "DROP INDEX chunk_source; UPDATE chunk SET row0={0}",
      "UPDATE chunk SET t0={0}, t1={1}",
      "UPDATE source SET parent={0}",
      "UPDATE source SET parent=id",
      "UPDATE meta SET value='{0}' WHERE key IN ('start_ns', 'end_ns', 'interval_ns')",
      "UPDATE meta SET value='recording' WHERE key='state'",
      "UPDATE series SET exp10={1} % 19",
      "UPDATE series SET name='wait_channel', unit='' WHERE name='gpu_util_ratio'",
      "UPDATE event SET t={0}, t_end={1}",
      "INSERT INTO loss VALUES({0}, 'damaged_chunk', {1}, 'error', '', '[[{0}, {1}, {1}]]')",
      "UPDATE source SET attrs='{{\"pid\": {0}, \"start_ns\": {1}}}'",
      "ALTER TABLE loss RENAME TO other; CREATE VIEW loss AS SELECT * FROM other",
      "ALTER TABLE event ADD COLUMN more AS (hex(zeroblob({0})))",
  };
  auto database = Database::open(path, Access::kReadWrite);
  if (!database) return;
  const char* statement = kStatements[choices.byte() % kStatements.size()];
  const std::int64_t first = choices.number(), second = choices.number();
  (void)database->execute(fmt::format(fmt::runtime(statement), first, second).c_str());
}

// A file in memory where there is such a place, removed at exit.
class File {
 public:
  File() {
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    folder_ = (memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/headroom-fuzz-XXXXXX";
    HR_CHECK(::mkdtemp(folder_.data()) != nullptr, "a temporary folder is needed");
  }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] std::string path() const { return folder_ + "/a.hrec"; }

 private:
  std::string folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File file;
  static const std::array<Recording, 2> kJobs{waiting_job(), batch()};
  constexpr int kMostChanges = 24;
  Choices choices(data, size);
  Recording recording = kJobs[choices.byte() % kJobs.size()];
  const bool in_file = choices.byte() % 2 == 0;
  for (int i = 0; i < kMostChanges && !choices.empty(); ++i) change(recording, choices);
  std::stable_sort(recording.events.begin(), recording.events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  std::error_code ignored;
  std::filesystem::remove(file.path(), ignored);
  HR_CHECK(write_recording(recording, file.path()), "whatever is in memory can be written");
  if (in_file) change_file(file.path(), choices);
  (void)summarize(file.path());
  const auto read = read_recording(file.path(), {.max_values = 1 << 20});
  if (!read) {
    HR_CHECK(!read.error().what.empty(), "an error says something");
    return 0;
  }
  const Explanation explanation = testing::check_explained(*read);
  const auto nowhere = [](std::string_view) -> Result<void> { return {}; };
  HR_CHECK(write_csv(*read, std::nullopt, nowhere) && write_jsonl(*read, nowhere) &&
               write_chrome_trace(*read, explanation, nowhere),
           "an export");
  const auto snapshot = exposition::snapshot_of(*read, explanation);
  HR_CHECK(exposition::to_openmetrics(exposition::families_of(snapshot)).ends_with("# EOF\n"), "metrics");
  (void)exposition::to_prometheus(exposition::dcgm_families_of(snapshot));
  return 0;
}
