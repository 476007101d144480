// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/child.h"
#include "base/fd.h"
#include "base/strings.h"
#include "batch/identity.h"

namespace headroom::batch {

namespace {

constexpr std::size_t kSmall = std::size_t{64} << 20;

std::string first_line(const std::string& path) {
  const auto text = read_file(path, kSmall);
  return text ? std::string(trim(split(*text, '\n')[0])) : "";
}

bool is_commit(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The folder with HEAD: .git, or where the file .git of a linked work tree points.
std::optional<std::string> git_directory(std::filesystem::path directory) {
  std::error_code error;
  for (;; directory = directory.parent_path()) {
    const auto entry = directory / ".git";
    if (std::filesystem::is_directory(entry, error)) return entry.string();
    if (std::filesystem::is_regular_file(entry, error)) {
      const std::string line = first_line(entry.string());
      if (!line.starts_with("gitdir:")) return std::nullopt;
      return (directory / std::string(trim(std::string_view(line).substr(7)))).lexically_normal().string();
    }
    if (directory == directory.parent_path()) return std::nullopt;
  }
}

std::string packed_commit(const std::string& common, std::string_view reference) {
  const auto packed = read_file(common + "/packed-refs", kSmall);
  if (!packed) return "";
  for (const std::string_view line : split(*packed, '\n')) {
    const auto blank = line.find(' ');
    if (blank != std::string_view::npos && trim(line.substr(blank + 1)) == reference)
      return std::string(line.substr(0, blank));
  }
  return "";
}

// What `git status` prints, or nothing where it fails or takes too long.
std::optional<std::string> git_status(const std::string& directory) {
  constexpr Nanos kPatience = 5 * kSecond;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  Fd out(ends[0]), in(ends[1]);
  auto nothing = open_read("/dev/null");
  const Fd silence(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nothing || !silence) return std::nullopt;
  ChildOptions options;
  options.argv = {"git", "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=none"};
  options.set_env = {"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"};
  options.cwd = directory;
  options.standard_in = nothing->get();
  options.standard_out = in.get();
  options.standard_error = silence.get();
  options.own_group = true;
  auto child = Child::spawn(options);
  in.reset();
  if (!child) return std::nullopt;
  std::string text;
  const Nanos deadline = monotonic_now() + kPatience;
  for (;;) {
    const Nanos left = deadline - monotonic_now();
    pollfd ready{out.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left / kMillisecond) + 1) == 0) return std::nullopt;
    char bytes[4096];
    const ssize_t got = ::read(out.get(), bytes, sizeof bytes);
    if (got < 0) continue;
    if (got == 0) break;
    // One changed file says enough; the rest is read so that git ends by itself.
    if (text.size() < sizeof bytes) text.append(bytes, static_cast<std::size_t>(got));
  }
  if (child->wait() != ExitStatus{}) return std::nullopt;
  return text;
}

}  // namespace

std::optional<std::string> git_commit(const std::string& directory) {
  const auto git = git_directory(directory);
  if (!git) return std::nullopt;
  const std::string head = first_line(*git + "/HEAD");
  if (is_commit(head)) return head;
  if (!head.starts_with("ref:")) return std::nullopt;
  const std::string reference(trim(std::string_view(head).substr(4)));
  // References of a linked work tree are in the folder that it shares.
  const std::string shared = first_line(*git + "/commondir");
  const std::string common = shared.empty() ? *git : (std::filesystem::path(*git) / shared).lexically_normal().string();
  for (const std::string& commit :
       {first_line(*git + "/" + reference), first_line(common + "/" + reference), packed_commit(common, reference)})
    if (is_commit(commit)) return commit;
  return "";
}

std::optional<GitState> git_state(const std::string& directory) {
  auto commit = git_commit(directory);
  if (!commit) return std::nullopt;
  GitState state{std::move(*commit), std::nullopt};
  if (const auto status = git_status(directory)) state.dirty = !status->empty();
  return state;
}

}  // namespace headroom::batch
