// SPDX-License-Identifier: Apache-2.0
#include "python/memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace headroom::python {

namespace {

constexpr std::size_t kRegionsAtOnce = 256;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of one snapshot
constexpr std::size_t kMostMisses = 16;                   // regions that are not there, before the rest is given up
constexpr std::size_t kBlock = 512;                       // what is copied when something turns out to be needed
constexpr std::size_t kGap = 512;
constexpr std::size_t kLongest = 64 * 1024;  // of joined regions

}  // namespace

std::size_t ProcessMemory::read(std::span<const Region> regions, std::byte* into) {
  std::array<iovec, kRegionsAtOnce> remote;
  std::size_t done = 0;
  while (!regions.empty()) {
    const std::size_t count = std::min(regions.size(), remote.size());
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < count; ++i) {
      remote[i] = {reinterpret_cast<void*>(regions[i].at), regions[i].size};
      wanted += regions[i].size;
    }
    const iovec local{into + done, wanted};
    const ssize_t got = ::process_vm_readv(pid_, &local, 1, remote.data(), count, 0);
    if (got < 0) {
      error_ = errno;
      return done;
    }
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < wanted) return done;
    regions = regions.subspan(count);
  }
  return done;
}

void Snapshot::take(std::span<const Region> regions) {
  pieces_.clear();
  used_ = 0;
  add(regions);
  taken_ = pieces_.size();
}

void Snapshot::add(std::span<const Region> regions) {
  std::size_t misses = 0;
  while (!regions.empty() && misses < kMostMisses) {
    std::size_t wanted = 0, count = 0;
    while (count < regions.size() && used_ + wanted + regions[count].size <= kMostBytes)
      wanted += regions[count++].size;
    if (count == 0) return;
    if (bytes_.size() < used_ + wanted) bytes_.resize(used_ + wanted);
    ++system_calls_;
    std::size_t got = memory_.read(regions.first(count), bytes_.data() + used_);
    std::size_t whole = 0;
    for (; whole < count && regions[whole].size <= got; ++whole) {
      pieces_.push_back({regions[whole], used_});
      used_ += regions[whole].size;
      got -= regions[whole].size;
    }
    if (whole < count) ++misses, ++whole;
    regions = regions.subspan(whole);
  }
}

std::optional<std::size_t> Snapshot::find(Address at, std::size_t size) const {
  for (std::size_t i = pieces_.size(); i-- > 0;)
    if (pieces_[i].holds(at, size)) return i;
  return std::nullopt;
}

const std::byte* Snapshot::earlier(Address at, std::size_t size) const {
  const auto later = find(at, size);
  for (std::size_t i = 0; later && i < *later; ++i)
    if (pieces_[i].holds(at, size)) return bytes_.data() + pieces_[i].offset + (at - pieces_[i].region.at);
  return nullptr;
}

const std::byte* Snapshot::need(Address at, std::size_t size) {
  auto found = find(at, size);
  if (!found && at + size >= at) {
    // What lies around it is likely to be needed next, and a page is there as a whole or not at all.
    const Address begin = at / kBlock * kBlock, page_end = (begin / kPage + 1) * kPage;
    const Region alone{at, size}, block{begin, std::max<std::size_t>(kBlock, at + size - begin)};
    if (block.at + block.size <= page_end) add({&block, 1});
    found = find(at, size);
    if (!found) add({&alone, 1});
    found = find(at, size);
  }
  return found ? bytes_.data() + pieces_[*found].offset + (at - pieces_[*found].region.at) : nullptr;
}

void join(std::vector<Region>& regions) {
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.at < b.at; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < regions.size(); ++i) {
    Region& last = regions[kept];
    const Address end = std::max(last.at + last.size, regions[i].at + regions[i].size);
    if (regions[i].at <= last.at + last.size + kGap && end - last.at <= kLongest)
      last.size = end - last.at;
    else
      regions[++kept] = regions[i];
  }
  if (!regions.empty()) regions.resize(kept + 1);
}

}  // namespace headroom::python
