// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/recording.h"

namespace headroom {

// Makes it the recording that would have begun at that instant: rows, list rows and events from before are gone. What
// holds until another comes stays: the phases that are open and what a main thread waits for begin there, and that a
// GPU was lost, or came back, keeps its time. Nothing changes where it begins then, or later.
void forget_before(Recording& recording, Nanos instant);

// The same for the rows of one source, lists aside.
void forget_rows(Track& track, Nanos instant);

// The recording that forget_before() would leave, beside the one that goes on. What is not of a time (sources, texts,
// lists) is lent to it: `whole` has that again when this ends, and must not be used before.
class RecentPart {
 public:
  RecentPart(Recording& whole, Nanos instant);
  ~RecentPart();
  RecentPart(const RecentPart&) = delete;
  RecentPart& operator=(const RecentPart&) = delete;
  [[nodiscard]] const Recording& recording() const { return part_; }

 private:
  void exchange_what_is_lent();
  Recording& whole_;
  Recording part_;
};

// `until`, or earlier: when the last kernel before it was seen on each GPU that is used; the recording's start where
// one has none. What a window means rests on them: whether a process that does nothing has not begun yet, or is done.
[[nodiscard]] Nanos last_kernels_before(const Recording& recording, Nanos until);

// Thins out what a live picture keeps of its machine in memory: rows that say nothing new go.
//   Of processes that sleep beside the work on the GPUs: of rows that are equal, but for cells that were not sampled,
//   the first, the last two, which say what it does now, and one in `every`. A process is beside that work which has no
//   context on a GPU, and no parent that has: of those at work each look counts, in their shares of time. There are
//   hundreds of the others. Of the driver's fine power samples: the last seconds. The newest one is shown; what power
//   was before the rows of the GPU say.
class KeptShort {
 public:
  explicit KeptShort(Nanos every) : every_(every) {}
  // Called again after rows were added at the end, or taken at the beginning. A cell that only one of two rows has is
  // kept.
  void shorten(Recording& recording);

 private:
  Nanos every_;
  std::size_t sources_ = 0;       // of which it is known
  std::vector<bool> at_work_;     // whether they are at work, by source
  std::vector<Nanos> looked_at_;  // by source: the last row that was considered
};

class FileReader;

// A recording that is read again and again while it is written: each time only what came since. Where that cannot be
// told (the file was replaced or cut, or something had to be mended) all of it is read anew. What was read is not
// looked at again: that it was damaged since is not seen.
class GrowingRecording {
 public:
  // Nothing is read yet. `leave_out` is that of ReadOptions, and must outlive this. `id` is that of the recording that
  // lies there; "": whichever the first read finds.
  explicit GrowingRecording(std::string path, std::span<const Metric> leave_out = {}, std::string id = "");
  GrowingRecording(GrowingRecording&&) noexcept;
  GrowingRecording& operator=(GrowingRecording&&) noexcept;
  ~GrowingRecording();

  // Afterwards recording() is what read_recording() gives, but for the order of a track's columns. On an error, which
  // another recording in the place of the first one is, too, it is what was read before.
  [[nodiscard]] Result<void> read_on();
  [[nodiscard]] bool has_read() const { return reader_ != nullptr; }
  // Keeps what is from that instant on: recording() begins there, in every read_on() after this as well, unless all is
  // read anew.
  void forget_before(Nanos instant);
  // Before the first read_on(): recording() is then without what KeptShort leaves out.
  void keep_short(Nanos every) { short_ = every; }
  // The next read_on() reads all of it anew.
  void remember() { remembers_ = true; }
  [[nodiscard]] Nanos begin() const;                 // of what lies there, once something was read
  [[nodiscard]] const Recording& recording() const;  // once something was read
  // recording() as if it had begun at that instant; until that ends nothing else here may be called.
  [[nodiscard]] RecentPart recent(Nanos instant);

 private:
  using File = std::pair<std::uint64_t, std::uint64_t>;  // device and inode
  [[nodiscard]] File file() const;

  std::string path_;
  std::span<const Metric> leave_out_;
  std::string id_;
  std::unique_ptr<FileReader> reader_;
  File read_from_{};
  bool remembers_ = false;
  std::optional<Nanos> short_;
};

}  // namespace headroom
