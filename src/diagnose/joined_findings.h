// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/explanation.h"

namespace headroom::diagnose {

// Where what one explanation says stands in the joined one.
struct PlaceOfPart {
  std::string name, machine;  // as sentences call it
  Nanos shift = 0;            // of its times
  std::vector<std::size_t> devices;
  std::vector<std::int32_t> places;
};

// What bounds the gains of a joined explanation: kernels remain, and all may wait for one another.
struct JoinedTime {
  Nanos begin = 0, end = 0;
  std::vector<Nanos> kernels;  // of the jobs, by device
  bool batch = false;          // tasks of a batch need not stay where they are: nothing is bounded
};

[[nodiscard]] Claims in_joined(const Claims& claims, const PlaceOfPart& part);

// How much faster the same work could be done if all of that time vanished.
[[nodiscard]] std::optional<double> removal_of(const JoinedTime& time, const Claims& claims);

// Findings of one kind are one; it names the part, or says of how many it is and tells the evidence of the one that it
// costs most. `findings`: of each part. Most lost device-time first, parts behind their whole.
[[nodiscard]] std::vector<Finding> join_findings(std::vector<std::vector<Finding>> findings,
                                                 const std::vector<PlaceOfPart>& parts, const JoinedTime& time);

// Those that claim time which `found` tells more of, as it knows all machines, give it up; it stands where its cost
// puts it.
void add_finding(Finding found, std::vector<Finding>& findings);

}  // namespace headroom::diagnose
