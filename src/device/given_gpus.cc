// SPDX-License-Identifier: Apache-2.0
#include "device/given_gpus.h"

#include <algorithm>

namespace headroom {

std::vector<Source> given_facts(const std::vector<Device>& devices, const std::vector<std::string>& given) {
  std::vector<Source> facts;
  for (const Device& device : devices) {
    const bool has = std::find(given.begin(), given.end(), device.uuid) != given.end();
    facts.push_back({.kind = SourceKind::kGpu, .key = device.uuid, .attrs = {{"given", has ? "true" : "false"}}});
  }
  return facts;
}

void SourceFacts::read(Nanos /*at*/, RecordingSink& sink) {
  for (const Source& fact : facts_) sink.add_source(fact);
  facts_.clear();
}

}  // namespace headroom
