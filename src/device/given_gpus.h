// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/entities.h"
#include "model/reader.h"

namespace headroom {

// Says of every device whether the job was given it: facts to be added to the devices' sources.
[[nodiscard]] std::vector<Source> given_facts(const std::vector<Device>& devices,
                                              const std::vector<std::string>& given);

// Adds facts to sources once, when they are read for the first time: after the reader that announces these.
class SourceFacts final : public Reader {
 public:
  explicit SourceFacts(std::vector<Source> facts) : facts_(std::move(facts)) {}
  void read(Nanos at, RecordingSink& sink) override;

 private:
  std::vector<Source> facts_;
};

}  // namespace headroom
