// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/child.h"
#include "base/fd.h"
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
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(errno_error("pipe for git"));
  Fd out(ends[0]), in(ends[1]);
  HR_TRY(const Fd nothing, open_read("/dev/null"));
  const Fd complaint(::memfd_create("git says", MFD_CLOEXEC));
  if (!complaint) return tl::unexpected(errno_error("room for what git says"));
  ChildOptions options;
  // Neither a lock nor a daemon nor a hook of the work tree's: it is looked at, and not touched.
  options.argv = {"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.set_env = {"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"};
  options.cwd = directory;
  options.standard_in = nothing.get();
  options.standard_out = in.get();
  options.standard_error = complaint.get();
  options.own_group = true;
  HR_TRY(Child child, Child::spawn(options));
  in.reset();
  std::string text;
  const Nanos deadline = monotonic_now() + patience;
  for (;;) {
    const Nanos left = deadline - monotonic_now();
    pollfd ready{out.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left / kMillisecond) + 1) == 0)
      return fail(Errc::kBusy, "git takes too long");
    char bytes[4096];
    const ssize_t got = ::read(out.get(), bytes, sizeof bytes);
    if (got < 0) continue;
    if (got == 0) break;
    // The commit comes first, and one changed file says enough; the rest is read so that git ends by itself.
    if (text.size() < sizeof bytes) text.append(bytes, static_cast<std::size_t>(got));
  }
  if (child.wait() == ExitStatus{}) return text;
  char words[4096];
  const ssize_t said = ::pread(complaint.get(), words, sizeof words, 0);
  const std::string_view why(words, static_cast<std::size_t>(std::max<ssize_t>(0, said)));
  if (why.find("dubious ownership") != std::string_view::npos)
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
