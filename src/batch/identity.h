// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"

namespace headroom::batch {

// Hashes of files' contents, "xxh128:" and 32 hex digits (`xxh128sum` prints the same). A file is read once for as long
// as its place, size and times stay.
class InputHasher {
 public:
  [[nodiscard]] Result<std::string> hash(const std::string& path);

 private:
  struct Known {
    Nanos modified = 0, changed = 0;
    std::int64_t size = 0;
    std::string hash;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Known> known_;  // by device and inode
};

// Absolute, without "." and "..": where the task runs, and where one of its files is.
[[nodiscard]] std::string directory_of(const TaskSpec& task, const std::string& start_directory);
[[nodiscard]] std::string path_of(const TaskSpec& task, const std::string& file, const std::string& start_directory);

// Sets TaskSpec::identity, 16 hex digits: of the command without its place, the parameters, the working directory and
// the contents of the inputs. An input that another task leaves as an output counts by that task's identity, so that it
// need not exist yet. Of tasks that are the same in all this, the second and later ones differ by their count.
// kNotFound: an input that is not there and that no task makes.
[[nodiscard]] Result<void> set_identities(std::vector<TaskSpec>& tasks, const std::string& start_directory,
                                          InputHasher& hasher);

// What durations are kept for: command and parameters, whatever the inputs hold.
[[nodiscard]] std::string duration_key(const TaskSpec& task);

struct GitState {
  std::string commit;         // 40 (or 64) hex digits; "" before the first commit
  std::optional<bool> dirty;  // tracked files differ; absent where git takes too long to say
  bool refused = false;       // it is another user's, so git says nothing of it
  bool operator==(const GitState&) const = default;
};
// Of the work tree that the directory is in, as `git status` says it; nothing where it is in none, or git is not there.
// No program that the work tree's own configuration names is run.
[[nodiscard]] std::optional<GitState> git_state(const std::string& directory, Nanos patience = 5 * kSecond);

}  // namespace headroom::batch
