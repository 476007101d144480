// SPDX-License-Identifier: Apache-2.0
#include "cli/predictions.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/regular_file.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "report/verify.h"

namespace headroom::cli {

namespace {

constexpr std::ptrdiff_t kMostOutcomes = 2000;
constexpr std::size_t kLargestHistory = std::size_t{4} << 20;

// The newest of it, where it is too large.
Result<std::string> text_there(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::string();
  if (const auto regular = open_regular(path); !regular) return tl::unexpected(regular.error());
  std::string text = read_regular_tail(path, kLargestHistory);
  if (text.size() == kLargestHistory) text.erase(0, text.find('\n') + 1);
  return text;
}

std::string newest(std::string text) {
  auto lines = std::count(text.begin(), text.end(), '\n');
  std::size_t begin = 0;
  for (; lines > kMostOutcomes; --lines) begin = text.find('\n', begin) + 1;
  return text.substr(begin);
}

}  // namespace

Result<std::string> predictions_path() {
  HR_TRY(const std::string folder, users_state_folder());
  return folder + "/predictions.jsonl";
}

Result<compare::Outcomes> past_predictions() {
  const auto path = predictions_path();
  const auto text = path ? text_there(*path) : tl::unexpected(path.error());
  if (!text) say(fmt::format("going on without past predictions: {}", text.error().what));
  return compare::outcomes_of(text.value_or(""));
}

Result<void> remember(const PredictionOutcome& outcome) {
  HR_TRY(const std::string path, predictions_path());
  HR_TRYV(make_private_folder(directory_of(path)));
  HR_TRY(const Fd lock, locked_file(path + ".lock"));
  HR_TRY(std::string text, text_there(path));
  if (!text.empty() && text.back() != '\n') text += '\n';
  // Replaced whole, with the mode that it has: its own first.
  const Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!made) return tl::unexpected(errno_error("open " + path));
  return write_file(path, newest(text + compare::outcome_line(outcome)));
}

std::string absolute_path(const std::string& path) {
  std::error_code ignored;
  const std::string whole = std::filesystem::absolute(path, ignored).lexically_normal().string();
  return whole.empty() ? path : whole;
}

Result<void> show_predictions(bool json) {
  HR_TRY(const compare::Outcomes past, past_predictions());
  if (past.damaged > 0)
    say(fmt::format("{} of the history cannot be read and {} left out", count_of(past.damaged, "line"),
                    past.damaged == 1 ? "is" : "are"));
  if (past.uncounted > 0)
    say(fmt::format("{} of an older version, which might take steps of unequal batches for equal work, {} not counted",
                    count_of(past.uncounted, "prediction"), past.uncounted == 1 ? "is" : "are"));
  const auto causes = compare::cause_histories(past.list);
  put(json ? report::predictions_json(causes, past.list)
           : report::predictions_text(causes, past.list, text_options(STDOUT_FILENO)));
  return {};
}

}  // namespace headroom::cli
