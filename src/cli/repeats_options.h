// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/cli11.h"
#include "cli/repeats.h"
#include "probe/run_order.h"

// The options that `ab` and `probe` share.
namespace headroom::cli {

struct RepeatsOptions {
  std::string gpus, folder, timeout, grace = "10s", interval = "200ms", order = "alternate";
  std::uint64_t seed = 1;
  std::vector<std::string> phases, metrics, steps;
  bool fresh = false, trust_folder = false, quiet = false, json = false;

  [[nodiscard]] probe::RunOrder run_order() const {
    return order == "random" ? probe::RunOrder::kRandom : probe::RunOrder::kAlternate;
  }
};
void declare_repeats_options(CLI::App& app, RepeatsOptions& options);

// As they were given, for the command that goes on: without what belongs to one invocation only.
[[nodiscard]] std::vector<std::string> words_of(const RepeatsOptions& options);
// Everything of a request but its repeats, outputs and resume. `folder`: where none was given.
[[nodiscard]] Result<RepeatsRequest> request_of(const RepeatsOptions& options, const std::string& verb,
                                                const std::string& folder);

// "5%" or "0.05" as 0.05.
[[nodiscard]] Result<double> parse_share(const std::string& option, const std::string& text);

}  // namespace headroom::cli
