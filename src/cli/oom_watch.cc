// SPDX-License-Identifier: Apache-2.0
#include "cli/oom_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/oom_kills.h"

namespace headroom::cli {

Attrs OomWatch::until_now() {
  const auto now = group_.oom_kills();
  if (!now || !before_ || now->of_machine != before_->of_machine) return {};
  return {{std::string(kOomKills), fmt::format("{}", std::max<std::int64_t>(0, now->count - before_->count))},
          {std::string(kOomKillsOf), std::string(now->of_machine ? kOfMachine : kOfCgroup)}};
}

}  // namespace headroom::cli
