// SPDX-License-Identifier: Apache-2.0
#include "marks/ring.h"

#include <algorithm>
#include <cstring>

#include "base/filesystem.h"

namespace headroom::marks {

namespace {

constexpr std::uint32_t kMostNamesBytes = 1U << 20, kMostSlots = 1U << 20;
constexpr std::uint64_t kFarthest = std::uint64_t{1}
                                    << 40;                 // a jump beyond is nothing that a job does: 12 days at 1 us
constexpr std::int64_t kMostLost = std::int64_t{1} << 48;  // of one ring: the sum of many must hold

bool is_known_kind(const headroom_mark& record) {
  const std::uint32_t kind = record.kind_and_thread >> 24;
  return kind >= HEADROOM_MARK_BEGIN && kind <= HEADROOM_MARK_PARAMETER;
}

}  // namespace

Result<RingHead> parse_ring_head(std::span<const std::byte> bytes) {
  headroom_marks_header header{};
  if (bytes.size() < sizeof header) return fail(Errc::kBusy, "it is shorter than a header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::all_of(std::begin(header.magic), std::end(header.magic), [](char c) { return c == 0; }))
    return fail(Errc::kBusy, "it has no header yet");
  if (std::memcmp(header.magic, HEADROOM_MARKS_MAGIC, sizeof header.magic) != 0)
    return fail(Errc::kInvalidInput, "it does not begin as a ring of marks does");
  if (header.version != HEADROOM_MARKS_VERSION)
    return fail(Errc::kUnsupported, fmt::format("it is of version {}", header.version));
  RingHead head{.pid = header.pid, .names_bytes = header.names_bytes, .slots = header.slots};
  head.via.assign(header.via, ::strnlen(header.via, sizeof header.via));
  // A million ticks per second would still fit.
  constexpr std::uint64_t kMostTicks = INT64_MAX / 1'000'000'000;
  const bool good = header.header_bytes == HEADROOM_MARKS_HEADER_BYTES &&
                    header.record_bytes == sizeof(headroom_mark) && header.names_bytes <= kMostNamesBytes &&
                    header.slots >= 1 && header.slots <= kMostSlots && header.pid > 0 &&
                    header.start_ticks <= kMostTicks && (head.via == "marks" || head.via == "nvtx");
  if (!good) return fail(Errc::kInvalidInput, "its header makes no sense");
  head.start_ticks = static_cast<std::int64_t>(header.start_ticks);
  return head;
}

std::optional<std::string_view> ring_text(std::span<const std::byte> bytes) {
  std::uint16_t length = 0;
  if (bytes.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::size_t there = std::min<std::size_t>(length, bytes.size() - sizeof length);
  if (there == 0) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + sizeof length, there);
}

bool RingCursor::is_of_a_later_lap(std::uint64_t sequence) const {
  return sequence > next_ + 1 && sequence - 1 - next_ <= kFarthest && (sequence - 1 - next_) % slots_ == 0;
}

void RingCursor::lose(std::uint64_t count, RingMarks& out) {
  const auto more = std::min(static_cast<std::int64_t>(count), kMostLost - lost_);
  lost_ += more;
  out.lost += more;
}

std::size_t RingCursor::take(std::span<const headroom_mark> records, Nanos now, bool ended, RingMarks& out) {
  std::size_t later = 0;  // the next record that is written, once somebody asked
  for (std::size_t i = 0; i < records.size(); ++i) {
    const headroom_mark& record = records[i];
    if (record.sequence == next_ + 1) {
      is_known_kind(record) ? out.marks.push_back(record) : static_cast<void>(++out.bad);
    } else if (is_of_a_later_lap(record.sequence)) {
      // The oldest that may still be there is the one after it, a lap before.
      const std::uint64_t oldest = record.sequence - slots_;
      lose(oldest - next_, out);
      next_ = oldest;
      continue;
    } else if (record.sequence > next_ + 1) {
      ++out.bad;
    } else {
      const auto written = [&](std::size_t at) {
        const std::uint64_t sequence = records[at].sequence, expected = next_ + 1 + (at - i);
        return sequence >= expected && (sequence - expected) % slots_ == 0;
      };
      later = std::max(later, i + 1);
      while (later < records.size() && !written(later)) ++later;
      if (later == records.size() || (!ended && records[later].at > now - kSlotPatience)) return i;
      lose(1, out);
    }
    ++next_;
  }
  return records.size();
}

namespace {

constexpr const char* kRings = "headroom-marks";
constexpr std::uint64_t kLeastFree = 64U << 20;  // bytes: others live off that memory, too

}  // namespace

Result<RingDirectory> RingDirectory::make(const std::vector<std::string>& places) {
  Error why{.code = Errc::kNotFound, .what = "there is no place for the marks of the job", .hint = ""};
  for (const std::string& place : places) {
    if (const auto free = free_bytes(place); free && *free < kLeastFree) {
      why = {.code = Errc::kNoSpace, .what = fmt::format("{} is full", place), .hint = ""};
      continue;
    }
    auto folder = LockedFolder::make(place, kRings, LockedFolder::Lock::kNeeded);
    if (folder) return RingDirectory(place, std::move(*folder));
    why = folder.error();
  }
  return tl::unexpected(why);
}

int remove_stale_rings(const std::string& place) { return remove_stale_folders(place, kRings); }

}  // namespace headroom::marks
