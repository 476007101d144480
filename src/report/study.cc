// SPDX-License-Identifier: Apache-2.0
#include "report/study.h"

#include <nlohmann/json.hpp>

namespace headroom::report {

std::string to_text(const StudyReport& report, const TextOptions&) { return report.name + "\n"; }

std::string to_json(const std::vector<StudyReport>& studies) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const StudyReport& study : studies) list.push_back({{"name", study.name}});
  return Json{{"schema", "headroom.study/1"}, {"studies", std::move(list)}}.dump(1) + "\n";
}

}  // namespace headroom::report
