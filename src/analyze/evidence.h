// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/uses.h"
#include "analyze/utilisation.h"
#include "model/ledger.h"

// Where evidence of another kind comes in: why a device was idle while a process of the job held it. The driver's
// utilisation decides how much of the time that was, and nothing here can change it (docs/ledger.md).
namespace headroom {

// Which part of a use: before its first kernel, between kernels, or after its last.
enum class UsePart : std::uint8_t { kStartup, kBetween, kTail };

// An idle stretch of one use of a device, between two cuts of every kind of evidence.
struct IdleStretch {
  const Use& use;
  UsePart part = UsePart::kBetween;
  Nanos begin = 0, end = 0;
  const IdleTime& device;  // how idle the device was around it
};

// What it was, as far as one kind of evidence can tell.
struct HostClaim {
  Account account = Account::kUnexplained;
  Confidence confidence = Confidence::kMedium;
  Tiers tiers;
  std::string_view where = {};  // a phase or function of the job; owned by the evidence; "" for none
};

// A part of a stretch, and what it was.
struct HostShare {
  Nanos length = 0;
  HostClaim claim;
};

// One kind of evidence about the host. Asked in order of trust, and the first that answers decides.
class Evidence {
 public:
  virtual ~Evidence() = default;
  // Puts into `parts`, which are empty, parts one after the other that make up the stretch; none where this kind does
  // not speak for it. Asked a million times of a day, with the same vector.
  virtual void claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const = 0;
  // Adds the instants at which its answer for `use` may change; a stretch never lies across one. Evidence that is
  // sampled may answer for a stretch by what it knows of its middle, and then need not cut more finely than it samples.
  virtual void cut(const Use& use, std::vector<Nanos>& cuts) const = 0;
};

struct StackView;
namespace stacks {
class Families;
}

// All that a recording has, the most trusted first. Lives as long as its arguments, which it looks into. What a
// job says of itself is not among it: that says when, not what the device waited for (named_phases.h).
[[nodiscard]] std::vector<std::unique_ptr<Evidence>> evidence_of(const Recording& recording, const JobView& job,
                                                                 const StackView& stacks,
                                                                 const stacks::Families& families,
                                                                 const Thresholds& limits);

}  // namespace headroom
