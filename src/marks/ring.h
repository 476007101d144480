// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/locked_folder.h"
#include "base/result.h"
#include "base/time.h"
#include "wire/marks.h"

// The bytes of a ring of marks (wire/marks.h), which another program writes while we look: nothing in them is trusted.
namespace headroom::marks {

// A slot that was given away and not written is waited for this long, if later ones were: its writer was killed, or
// does not run.
inline constexpr Nanos kSlotPatience = kSecond;

struct RingHead {
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;  // 0: not known
  std::string via;               // "marks" or "nvtx"
  std::uint32_t names_bytes = 0, slots = 0;

  [[nodiscard]] std::uint64_t names_at() const { return HEADROOM_MARKS_HEADER_BYTES; }
  [[nodiscard]] std::uint64_t record_at(std::uint32_t slot) const {
    return names_at() + names_bytes + std::uint64_t{slot} * sizeof(headroom_mark);
  }
};

// kBusy: it is not written yet. kUnsupported: of a newer version. kInvalidInput: it is no ring.
[[nodiscard]] Result<RingHead> parse_ring_head(std::span<const std::byte> bytes);

// The text whose number is the place where `bytes` begin; cut where they end. Nothing where there is none.
[[nodiscard]] std::optional<std::string_view> ring_text(std::span<const std::byte> bytes);

struct RingMarks {
  std::vector<headroom_mark> marks;  // of a kind that we know, in the order in which their slots were given away
  std::int64_t lost = 0;             // written over, or never written
  std::int64_t bad = 0;              // no marks
};

// A place in the endless row of records. Every call moves it on; none moves it by more records than it is given.
class RingCursor {
 public:
  explicit RingCursor(std::uint32_t slots) : slots_(slots) {}

  [[nodiscard]] std::uint64_t next() const { return next_; }
  [[nodiscard]] std::uint32_t slot() const { return static_cast<std::uint32_t>(next_ % slots_); }
  // `records` are those from slot() on, around the end of the ring if need be; gives how many of them need not be
  // looked at again. `ended`: nobody writes any more.
  std::size_t take(std::span<const headroom_mark> records, Nanos now, bool ended, RingMarks& out);

 private:
  [[nodiscard]] bool is_of_a_later_lap(std::uint64_t sequence) const;
  void lose(std::uint64_t count, RingMarks& out);

  std::uint64_t slots_;
  std::uint64_t next_ = 0;  // the record that comes next
  std::int64_t lost_ = 0;   // in all
};

// The directory in which a job's processes make their rings (wire/marks.h): the recorder's own, mode 0700, locked.
class RingDirectory {
 public:
  // In the first of `places` that can hold it: absolute paths of directories, tried in turn.
  [[nodiscard]] static Result<RingDirectory> make(const std::vector<std::string>& places);

  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  [[nodiscard]] const std::string& place() const { return place_; }
  void remove() { folder_.remove(); }  // with what is in it; what a process has mapped it keeps

 private:
  RingDirectory(std::string place, LockedFolder folder) : place_(std::move(place)), folder_(std::move(folder)) {}

  std::string place_;
  LockedFolder folder_;
};

// Removes what recorders of this user that were killed have left in `place`; gives how many.
int remove_stale_rings(const std::string& place);

}  // namespace headroom::marks
