// SPDX-License-Identifier: Apache-2.0
#include "diagnose/headline_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

std::string subject(const Analysis& a, const std::vector<std::size_t>& devices) {
  if (devices.size() < a.devices.size()) return gpu_names(a, devices);
  return devices.size() == 1 ? "The GPU" : fmt::format("The {} GPUs", devices.size());
}

std::string apart_words(const Analysis& a, const std::vector<std::size_t>& devices,
                        const std::function<double(std::size_t)>& share) {
  constexpr std::size_t kNamed = 4;
  if (devices.empty()) return "";
  const auto less = [&](std::size_t x, std::size_t y) { return share(x) < share(y); };
  const auto [least, most] = std::minmax_element(devices.begin(), devices.end(), less);
  if (share(*most) - share(*least) < 2 * a.limits[Threshold::kMaterial]) return "";
  if (devices.size() > kNamed)
    return fmt::format(" (from {} on {} to {} on {})", human_percent(share(*least)), a.device_name(*least),
                       human_percent(share(*most)), a.device_name(*most));
  std::vector<std::string> words;
  for (const std::size_t device : devices)
    words.push_back(fmt::format("{} {}", a.device_name(device), human_percent(share(device))));
  return fmt::format(" ({})", fmt::join(words, ", "));
}

std::string mean_of(const std::string& shares) { return shares.empty() ? "" : " on average" + shares; }

std::string span_words(const Analysis& a) { return human_duration(a.ledger.span()); }

double share_of_span(const Analysis& a, Nanos ns) { return as_share(ns, a.ledger.span()); }

Nanos total_of(const Analysis& a, Account account, const std::vector<std::size_t>& devices) {
  Nanos sum = 0;
  for (const std::size_t device : devices) sum += a.ledger.total(account, device);
  return sum;
}

}  // namespace headroom::diagnose
