// SPDX-License-Identifier: Apache-2.0
#include "report/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_values.h"

namespace headroom::report {

namespace {

constexpr std::size_t kMark = 6, kId = 16;  // columns

std::string entry(std::string_view mark, const std::string& id, const std::string& what, const std::string& fix,
                  std::size_t width) {
  const std::string blank(kMark + kId, ' ');
  std::string out = wrap(what, width, fmt::format("{}{}", pad_right(mark, kMark), pad_right(id, kId)), blank);
  if (!fix.empty()) out += wrap(fix, width, blank + "try: ", blank + "     ");
  return out;
}

// Checks that find nothing to look at for the same reason share a line.
std::string absent_text_of(const std::vector<DoctorCheck>& checks, std::size_t width) {
  std::string out;
  std::vector<std::string> told;
  for (const auto& check : checks) {
    if (check.status != CheckStatus::kAbsent || std::find(told.begin(), told.end(), check.what) != told.end()) continue;
    told.push_back(check.what);
    std::string ids;
    for (const auto& other : checks) {
      if (other.status == CheckStatus::kAbsent && other.what == check.what) ids += (ids.empty() ? "" : ", ") + other.id;
    }
    if (ids == check.id)
      out += entry("-", check.id, check.what, check.fix, width);
    else
      out += wrap(fmt::format("{} ({})", check.what, ids), width, "-     ", std::string(kMark, ' '));
  }
  return out;
}

}  // namespace

std::string to_text(const std::vector<DoctorCheck>& checks, const TextOptions& wanted) {
  const TextOptions options = clamped(wanted);
  const auto count = [&](CheckStatus status) {
    return std::count_if(checks.begin(), checks.end(), [&](const auto& check) { return check.status == status; });
  };
  const auto failed = count(CheckStatus::kFail), warned = count(CheckStatus::kWarn);
  std::string summary = failed > 0   ? fmt::format("{} of {} checks failed", failed, checks.size())
                        : warned > 0 ? fmt::format("nothing failed; {} to know about", warned)
                                     : "nothing is in the way";
  const bool no_gpu = std::any_of(checks.begin(), checks.end(), [](const auto& check) {
    return check.id == "driver" && check.status == CheckStatus::kAbsent;
  });
  if (no_gpu) summary = "there is no GPU here; else " + summary;
  std::string out = bold(fmt::format("headroom doctor: {}", summary), options) + "\n\n";
  for (const auto status : {CheckStatus::kFail, CheckStatus::kWarn, CheckStatus::kOk}) {
    for (const auto& check : checks) {
      if (check.status == status)
        out += entry(check_status_name(status), check.id, check.what, check.fix, options.width);
    }
  }
  return out + absent_text_of(checks, options.width);
}

std::string to_json(const std::vector<DoctorCheck>& checks) {
  Json object{{"schema", "headroom.doctor/1"}};
  object["checks"] = Json::array();
  for (const auto& check : checks) {
    object["checks"].push_back({{"id", check.id},
                                {"status", check_status_name(check.status)},
                                {"what", check.what},
                                {"fix", text_json(check.fix)}});
  }
  return dump(object);
}

}  // namespace headroom::report
