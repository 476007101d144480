// SPDX-License-Identifier: Apache-2.0
#include "storage/rdb_schema.h"

#include <algorithm>
#include <limits>

#include "base/civil_time.h"
#include "base/strings.h"
#include "base/visible.h"

namespace headroom {

namespace {

constexpr std::array<std::string_view, 6> kKnown{"v2.6.0.a", "v3.0.0.a", "v3.0.0.b",
                                                 "v3.0.0.c", "v3.0.0.d", "v3.2.0.a"};
constexpr std::array<std::string_view, 4> kTooOld{"v0.9.0.a", "v1.2.0.a", "v1.3.0.a", "v2.4.0.a"};

template <class Names>
bool is_in(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<void> check_schema(std::string_view version) {
  if (is_in(kKnown, version)) return {};
  if (version.empty())
    return fail(
        Errc::kUnsupported,
        "no version of Optuna's schema is in it: it is being created just now, or older than Optuna 0.9",
        "try again; if it stays so, copy it and upgrade the copy with Optuna 3 or newer: optuna storage upgrade "
        "--storage URL");
  if (is_in(kTooOld, version))
    return fail(Errc::kUnsupported,
                fmt::format("its tables are of Optuna's schema {}, older than {}", version, kKnown.front()),
                "copy the storage, and bring the copy up to date with Optuna 3 or newer: optuna storage upgrade "
                "--storage URL");
  return fail(Errc::kUnsupported,
              fmt::format("its tables are of Optuna's schema {}, which this program does not know; it reads {} to {}",
                          visible(version), kKnown.front(), kKnown.back()),
              "a newer Headroom may read it");
}

std::optional<double> stored_value(std::optional<double> value, std::string_view type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (type == "INF_POS") return kInfinity;
  if (type == "INF_NEG") return -kInfinity;
  if (type == "NAN") return std::numeric_limits<double>::quiet_NaN();
  if (type == "FINITE") return value;
  if (!type.empty()) return std::nullopt;
  return value ? *value : std::numeric_limits<double>::quiet_NaN();  // databases keep NaN as NULL
}

std::optional<Nanos> stored_time(std::string_view text) {
  const auto time = parse_iso_time(text);
  return time ? std::optional(time->at) : std::nullopt;
}

Result<StorageContent> finished_content(const StorageRequest& request, StudyAssembler& assembler, std::string engine) {
  std::vector<std::string> names = assembler.names();
  if (request.study && std::find(names.begin(), names.end(), *request.study) == names.end()) {
    constexpr std::size_t kShown = 20;
    const std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
    names.resize(names.size() - more);
    for (std::string& name : names) name = visible(name);
    std::string hint = names.empty() ? "there is no study in it yet" : "it has " + join(names, ", ");
    if (more > 0) hint += fmt::format(" and {} more", more);
    return fail(Errc::kNotFound, fmt::format("no study is named {}", visible(*request.study)), std::move(hint));
  }
  return StorageContent{std::move(engine), assembler.finish()};
}

}  // namespace headroom
