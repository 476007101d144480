// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/run_program.h"
#include "base/strings.h"
#include "batch/identity.h"

namespace headroom::batch {

namespace {

constexpr Nanos kBriefly = 2 * kSecond;

bool is_commit(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// What git prints, at least its beginning. kBusy: it took too long; anything else: it is not there, or said no.
// kNoPermission: it refuses a repository of another user.
Result<std::string> run_git(std::vector<std::string> arguments, const std::string& directory, Nanos patience) {
  ChildOptions options;
  // Neither a lock nor a daemon nor a hook of the work tree's: it is looked at, and not touched.
  options.argv = {"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.set_env = {"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"};
  options.cwd = directory;
  constexpr std::size_t kMost = 8192;  // the commit comes first, and one changed file says enough
  HR_TRY(ProgramAnswer answer, run_program(std::move(options), patience, kMost));
  if (answer.status == ExitStatus{}) return std::move(answer.out);
  if (answer.error.find("dubious ownership") != std::string::npos)
    return fail(Errc::kNoPermission, "git refuses it: it is another user's");
  return fail(Errc::kNotFound, "git says no");
}

// A filter of the repository's own is a program that came with it; those of the user's own configuration stay.
std::vector<std::string> without_its_filters(const std::string& directory) {
  std::vector<std::string> arguments;
  const auto names = run_git({"config", "--local", "--includes", "--name-only", "-z", "--get-regexp",
                              R"(^filter\..*\.(clean|process|required)$)"},
                             directory, kBriefly);
  if (!names) return arguments;
  for (const auto name : split(*names, '\0'))
    if (!name.empty())
      arguments.insert(arguments.end(), {"-c", fmt::format("{}={}", name, name.ends_with("required") ? "false" : "")});
  return arguments;
}

// "# branch.oid <commit>", or "(initial)" before the first; further lines with '#' are headers, all others changes.
GitState state_of(std::string_view status) {
  constexpr std::string_view kCommit = "# branch.oid ";
  GitState state{.commit = "", .dirty = false, .refused = false};
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with(kCommit) && is_commit(line.substr(kCommit.size()))) state.commit = line.substr(kCommit.size());
    if (!line.empty() && line[0] != '#') state.dirty = true;
  }
  return state;
}

}  // namespace

std::optional<GitState> git_state(const std::string& directory, Nanos patience) {
  std::vector<std::string> arguments = without_its_filters(directory);
  // Of submodules only the commit: git would go into them with their own configuration.
  arguments.insert(arguments.end(), {"status", "--porcelain=v2", "--branch", "--no-ahead-behind",
                                     "--untracked-files=no", "--ignore-submodules=dirty"});
  const auto status = run_git(std::move(arguments), directory, patience);
  if (status) return state_of(*status);
  if (status.error().code == Errc::kNoPermission) return GitState{.commit = "", .dirty = std::nullopt, .refused = true};
  if (status.error().code != Errc::kBusy) return std::nullopt;
  // A tree too large to be compared in time still has a commit.
  const auto commit = run_git({"rev-parse", "--verify", "--quiet", "HEAD"}, directory, kBriefly);
  if (!commit || !is_commit(trim(*commit))) return std::nullopt;
  return GitState{.commit = std::string(trim(*commit)), .dirty = std::nullopt, .refused = false};
}

}  // namespace headroom::batch
