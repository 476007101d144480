// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "sim/core/layout.h"

// The course of one device: functions of (image, header, now). Nothing here knows of clocks or other processes.
namespace headroom::sim {

// Receives the bins that an advance crosses.
struct BinSink {
  BinRecord* out = nullptr;
  std::size_t capacity = 0;
  std::size_t count = 0;
};

[[nodiscard]] Nanos edge_of(const Header& header, std::int64_t index);
[[nodiscard]] std::int64_t bin_at(const Header& header, Nanos at);  // the last edge that is not after `at`

[[nodiscard]] Image first_image(const Header& header, std::uint32_t device);

// Moves the image to `now`. False if it stopped earlier because the sink is full: commit, flush, and go on. A device
// that was idle for long keeps only the bins that the ring can hold.
[[nodiscard]] bool advance(Image& image, const Header& header, std::uint32_t device, Nanos now, BinSink& sink);

[[nodiscard]] contention::Policy policy_at(const Image& image, const Header& header, std::uint32_t device);
[[nodiscard]] double energy_uj(const Image& image, const Header& header, std::uint32_t device);
// Of contexts, and of what faults keep or take; without the driver's reserve. A fault may take more than there is.
[[nodiscard]] std::uint64_t memory_used(const Image& image, const Header& header, std::uint32_t device);
[[nodiscard]] bool has_compute_context(const Image& image);

[[nodiscard]] inline bool is_live(const Image& image, std::uint32_t slot) { return (image.live >> slot & 1) != 0; }

struct Owner {
  std::uint32_t pid;
  ContextKind kind;
};
// Gives the slot to a new context; what an earlier owner left there is dropped first. Returns its generation.
std::uint32_t create_context(Image& image, const Header& header, std::uint32_t device, std::uint32_t slot, Owner owner);
enum class End { kDestroyed, kDied };
// Drops the slot's context: queued work, memory, row. A death leaves a row behind while a fault says so.
void end_context(Image& image, const Header& header, std::uint32_t device, std::uint32_t slot, End how);

void seal(BinRecord& bin);
[[nodiscard]] bool is_sealed(const BinRecord& bin);

}  // namespace headroom::sim
