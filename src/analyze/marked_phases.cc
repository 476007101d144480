// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string_view>

#include "analyze/ends.h"
#include "analyze/named_phases.h"
#include "base/strings.h"

// Which slices of a device lie in which phase, and what a phase's name says of them.
namespace headroom {

namespace {

Tiers tier_of(std::string_view via) { return via == "stacks" ? "Y" : via == "output" ? "L" : "X"; }

// Marks and output know more than the counters of /proc, and less than stacks that name a family. Where a phase by
// stacks reaches beyond its own looks, those beside them say what it was; among its own it has them, too.
void tell(Slice& slice, const std::string& name, std::string_view via, bool beyond) {
  if (an_end_lies_in(slice) || (beyond && slice.tiers.has("Y"))) return;
  const bool guessed =
      slice.tiers.has("P") && (slice.account == Account::kCheckpoint || slice.account == Account::kInput);
  const bool open = guessed || slice.account == Account::kHostCode || slice.account == Account::kUnexplained;
  const auto account = open || slice.account == Account::kTeardown ? account_told_by(name) : std::nullopt;
  if (!account || (!open && account == Account::kInput)) return;
  slice.account = *account;
  slice.tiers |= tier_of(via);
  slice.confidence = Confidence::kMedium;
}

}  // namespace

std::optional<Account> account_told_by(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::string last = lower(name.substr(slash + 1));
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return last.find(word) != std::string::npos; });
  };
  if (last == "val" || last.starts_with("val_") || has({"valid", "eval"})) return Account::kValidationHost;
  if (has({"checkpoint", "ckpt", "save"})) return Account::kCheckpoint;
  if (has({"all_reduce", "allreduce", "all-reduce", "all_gather", "allgather", "reduce_scatter", "barrier",
           "broadcast"}))
    return Account::kPeers;
  if (has({"load_data", "data_load", "dataload", "load data", "data load", "fetch", "next_batch", "get_batch"}))
    return Account::kInput;
  if (slash == std::string_view::npos || has({"train"})) return std::nullopt;
  return account_told_by(name.substr(0, slash));
}

void mark_phases(const NamedPhases& named, std::vector<DeviceTime>& devices) {
  if (named.tracks.empty()) return;
  for (DeviceTime& device : devices) {
    if (!named.tells_of(device)) continue;
    std::vector<Slice> marked;
    marked.reserve(device.slices.size() + device.slices.size() / 8);
    for (Slice slice : device.slices) {
      while (slice.begin < slice.end) {
        const auto [stretch, via, until] = named.at(slice.pid, slice.begin);
        Slice part = slice;
        part.end = std::min(slice.end, until);
        if (stretch) {
          const Nanos first = stretch->begin + stretch->lead, last = stretch->end - stretch->trail;
          const bool beyond = part.begin < first || part.begin >= last;
          if (part.begin < first) part.end = std::min(part.end, first);
          if (!beyond) part.end = std::min(part.end, last);
          part.named = stretch->name;
          tell(part, named.names[static_cast<std::size_t>(stretch->name)], via, beyond);
        }
        marked.push_back(part);
        slice.begin = part.end;
      }
    }
    device.slices = std::move(marked);
  }
}

}  // namespace headroom
