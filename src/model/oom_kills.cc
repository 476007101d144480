// SPDX-License-Identifier: Apache-2.0
#include "model/oom_kills.h"

#include <algorithm>

#include "base/strings.h"

namespace headroom {

// "DataLoader worker (pid 4711) is killed by signal: Killed." or "DataLoader worker (pid(s) 4711, 4712) exited
// unexpectedly".
std::optional<GoneWorker> gone_loader_worker(std::string_view line) {
  constexpr std::string_view kWorker = "DataLoader worker (pid", kKilled = ") is killed by signal: Killed",
                             kGone = ") exited unexpectedly";
  const std::size_t at = line.find(kWorker);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kWorker.size());
  if (rest.starts_with("(s)")) rest.remove_prefix(3);
  const bool killed = rest.find(kKilled) != std::string_view::npos;
  if (!killed && rest.find(kGone) == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  const auto pid = parse_number<std::int64_t>(rest.substr(0, rest.find_first_not_of("0123456789")));
  if (!pid) return std::nullopt;
  return GoneWorker{.pid = *pid, .killed = killed};
}

}  // namespace headroom
