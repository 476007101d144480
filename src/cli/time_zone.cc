// SPDX-License-Identifier: Apache-2.0
#include "cli/time_zone.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>

#include "cli/environment.h"
#include "import/import.h"

namespace headroom::cli {

namespace {

// The C library takes a zone that it does not know for UTC, without a word: so its file is looked for.
bool is_zone(const std::string& name) {
  const bool plain = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                     name.find("..") == std::string::npos && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '-' || c == '+';
                     });
  std::error_code ignored;
  return plain &&
         std::filesystem::is_regular_file(environment("TZDIR").value_or("/usr/share/zoneinfo") + "/" + name, ignored);
}

// This process has another zone for as long as it lives.
class OtherZone {
 public:
  explicit OtherZone(const std::string& name) : before_(environment("TZ")) { set(name); }
  ~OtherZone() { set(before_); }
  OtherZone(const OtherZone&) = delete;
  OtherZone& operator=(const OtherZone&) = delete;

 private:
  static void set(const std::optional<std::string>& name) {
    if (name)
      ::setenv("TZ", name->c_str(), 1);
    else
      ::unsetenv("TZ");
    ::tzset();
  }
  std::optional<std::string> before_;
};

}  // namespace

Result<Nanos> offset_of_zone(const std::string& zone, Nanos shown) {
  if (const auto known = utc_offset_of(zone)) return (*known)(shown / kSecond) * kSecond;
  if (!is_zone(zone))
    return fail(Errc::kInvalidInput, fmt::format("'{}' is no time zone", zone),
                "write UTC, local, an offset such as +09:00, or a name such as Asia/Tokyo");
  const OtherZone other(zone);
  HR_TRY(const auto local, utc_offset_of("local"));
  return local(shown / kSecond) * kSecond;
}

}  // namespace headroom::cli
