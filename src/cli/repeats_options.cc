// SPDX-License-Identifier: Apache-2.0
#include "cli/repeats_options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/duration.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "output/log_pattern.h"

namespace headroom::cli {

void declare_repeats_options(CLI::App& app, RepeatsOptions& o) {
  app.add_option("--gpus", o.gpus, "which GPUs each run gets, all of them: 0,1 or UUIDs; none; default: the first")
      ->type_name("LIST");
  app.add_option("--order", o.order, "alternate (default: A B, B A, …), or random: who begins is drawn for two rounds")
      ->check(CLI::IsMember({"alternate", "random"}));
  app.add_option("--seed", o.seed, "of --order random; default: 1");
  app.add_option("--step", o.steps, "the group of REGEX in a line of output is the number of steps done")
      ->type_name("REGEX")
      ->expected(1);
  app.add_option("--phase", o.phases, "a line of output that matches begins the phase NAME; NAME none ends it")
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--metric", o.metrics, "the group of REGEX in a line of output is the metric NAME")
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--timeout", o.timeout, "of one run; what takes longer is stopped, and has failed")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--grace", o.grace, "between SIGTERM and SIGKILL (10s)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--folder", o.folder, "journal, logs and recordings; default: headroom-….batch here, by the commands")
      ->type_name("DIR");
  app.add_flag("--fresh", o.fresh, "start over; what was there is kept aside");
  app.add_flag("--trust-folder", o.trust_folder, "go on in a folder that others own or may write to");
  app.add_option("-i,--interval", o.interval, "time between samples of each recording (200ms)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_flag("-q,--quiet", o.quiet, "nothing but the answer, and what is wrong");
}

std::vector<std::string> words_of(const RepeatsOptions& o) {
  std::vector<std::string> words;
  const auto text = [&](std::string_view option, const std::string& value, std::string_view otherwise = "") {
    if (value != otherwise) words.push_back(fmt::format("{}={}", option, value));
  };
  text("--gpus", o.gpus), text("--order", o.order, "alternate");
  if (o.seed != 1) words.push_back(fmt::format("--seed={}", o.seed));
  for (const auto& step : o.steps) text("--step", step);
  for (const auto& phase : o.phases) text("--phase", phase);
  for (const auto& metric : o.metrics) text("--metric", metric);
  text("--timeout", o.timeout), text("--grace", o.grace, "10s"), text("--folder", o.folder);
  if (o.trust_folder) words.emplace_back("--trust-folder");
  text("--interval", o.interval, "200ms");
  return words;
}

Result<RepeatsRequest> request_of(const RepeatsOptions& o, const std::string& verb, const std::string& folder) {
  RepeatsRequest request{.verb = verb, .quiet = o.quiet};
  HR_TRY(request.grace, parse_duration(o.grace));
  std::error_code ignored;
  request.batch.folder =
      o.folder.empty() ? folder : std::filesystem::absolute(o.folder, ignored).lexically_normal().string();
  request.batch.gpus = o.gpus, request.batch.timeout = o.timeout;
  request.batch.fresh = o.fresh, request.batch.trust_folder = o.trust_folder;
  request.batch.surroundings = {.variable = environment,
                                .nvml_library = nvml_library(),
                                .virtual_gpus = on_virtual_gpus() && !foreign_pids(),
                                .shelf = ""};
  request.run_options = {"--interval", o.interval, "--output-lines"};
  using Kind = output::LogPattern::Kind;
  const auto add = [&](const char* option, Kind kind, const std::vector<std::string>& texts) -> Result<void> {
    for (const std::string& text : texts) {
      const auto pattern =
          kind == Kind::kStep ? output::log_pattern(kind, "", text) : output::parse_log_option(kind, text);
      if (!pattern) return tl::unexpected(within(option, pattern.error()));
      request.run_options.push_back(fmt::format("{}={}", option, text));
    }
    return {};
  };
  HR_TRYV(add("--step", Kind::kStep, o.steps));
  HR_TRYV(add("--phase", Kind::kPhase, o.phases));
  HR_TRYV(add("--metric", Kind::kMetric, o.metrics));
  if (o.gpus == "none") request.run_options.emplace_back("--no-gpu");
  return request;
}

Result<double> parse_share(const std::string& option, const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto number = parse_number<double>(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0)));
  const double share = number.value_or(0) / (percent ? 100 : 1);
  if (!number || !(share > 0) || !(share < 1))
    return fail(Errc::kInvalidInput, fmt::format("{}: '{}' is no share between 0 and 100 %", option, text),
                fmt::format("{} 5%", option));
  return share;
}

}  // namespace headroom::cli
