// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "model/recording.h"
#include "record/recent.h"

namespace headroom {

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
  // Before the first read_on(): recording() is then without what KeptShort leaves out (record/kept_short.h).
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
