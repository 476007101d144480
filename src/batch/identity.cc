// SPDX-License-Identifier: Apache-2.0
#include "batch/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <unordered_map>

#include "base/fd.h"

namespace headroom::batch {

namespace {

// Fields with their lengths in front: no two different lists of fields give the same bytes.
class Fields {
 public:
  Fields& add(std::string_view text) {
    bytes_ += std::to_string(text.size());
    bytes_ += ':';
    bytes_ += text;
    return *this;
  }
  Fields& add(std::size_t number) { return add(std::to_string(number)); }
  [[nodiscard]] std::string hex() const {
    return fmt::format("{:016x}", static_cast<std::uint64_t>(XXH3_64bits(bytes_.data(), bytes_.size())));
  }

 private:
  std::string bytes_;
};

Result<std::string> hash_of_descriptor(int fd, const std::string& path) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  HR_CHECK(state != nullptr, "no memory");
  XXH3_128bits_reset(state.get());
  std::vector<char> piece(kPiece);
  for (;;) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(errno_error("read " + path));
    if (got == 0) break;
    XXH3_128bits_update(state.get(), piece.data(), static_cast<std::size_t>(got));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("xxh128:{:016x}{:016x}", static_cast<std::uint64_t>(hash.high64),
                     static_cast<std::uint64_t>(hash.low64));
}

Nanos nanos_of(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

std::string place_of(const TaskSpec& task) {
  return task.line > 0 ? fmt::format("{}:{}", task.file, task.line) : fmt::format("task {}", task.name);
}

}  // namespace

Result<std::string> InputHasher::hash(const std::string& path) {
  // Not blocking: a pipe without a writer must not hang the batch.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return tl::unexpected(errno_error("open " + path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return tl::unexpected(errno_error("stat " + path));
  if (!S_ISREG(status.st_mode))
    return fail(Errc::kInvalidInput, fmt::format("{} is no file", path),
                "inputs are files; name the files of a folder");
  Known& known = known_[{status.st_dev, status.st_ino}];
  const Nanos modified = nanos_of(status.st_mtim), changed = nanos_of(status.st_ctim);
  if (known.hash.empty() || known.modified != modified || known.changed != changed || known.size != status.st_size) {
    HR_TRY(std::string hash, hash_of_descriptor(fd.get(), path));
    known = {modified, changed, status.st_size, std::move(hash)};
  }
  return known.hash;
}

std::string directory_of(const TaskSpec& task, const std::string& start_directory) {
  const auto path = (std::filesystem::path(start_directory) / task.working_directory).lexically_normal().string();
  return path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
}

std::string path_of(const TaskSpec& task, const std::string& file, const std::string& start_directory) {
  return (std::filesystem::path(directory_of(task, start_directory)) / file).lexically_normal().string();
}

std::string duration_key(const TaskSpec& task) {
  Fields fields;
  fields.add(task.argv.size());
  for (const std::string& word : task.argv) fields.add(word);
  for (const auto& [name, value] : task.parameters) fields.add(name).add(value);
  return fields.hex();
}

namespace {

class Identities {
 public:
  Identities(std::vector<TaskSpec>& tasks, const std::string& start, InputHasher& hasher)
      : tasks_(tasks), start_(start), hasher_(hasher), own_(tasks.size()), makers_(tasks.size()) {}

  Result<void> run() {
    std::unordered_map<std::string, std::size_t> maker_of;
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      for (const std::string& output : tasks_[i].outputs) maker_of.emplace(path_of(tasks_[i], output, start_), i);
    for (std::size_t i = 0; i < tasks_.size(); ++i) HR_TRYV(own(i, maker_of));
    chain();
    std::unordered_map<std::string, std::size_t> seen;
    for (TaskSpec& task : tasks_)
      if (const std::size_t before = seen[task.identity]++; before > 0)
        task.identity = Fields().add(task.identity).add(before).hex();
    return {};
  }

 private:
  Result<void> own(std::size_t i, const std::unordered_map<std::string, std::size_t>& maker_of) {
    const TaskSpec& task = tasks_[i];
    Fields fields;
    fields.add("headroom task 1").add(duration_key(task)).add(directory_of(task, start_)).add(task.inputs.size());
    for (const std::string& input : task.inputs) {
      const std::string path = path_of(task, input, start_);
      const auto maker = maker_of.find(path);
      if (maker != maker_of.end() && maker->second != i) {
        makers_[i].push_back(maker->second);
        fields.add(input).add("made");
        continue;
      }
      auto hash = hasher_.hash(path);
      if (!hash) return tl::unexpected(within(fmt::format("{}: inputs", place_of(task)), hash.error()));
      fields.add(input).add(*hash);
    }
    own_[i] = fields.hex();
    return {};
  }

  // Makers first. Tasks in a circle, which the plan refuses, keep what they have of their own.
  void chain() {
    std::vector<std::vector<std::size_t>> users(tasks_.size());
    std::vector<std::size_t> waits(tasks_.size()), ready;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i].identity = own_[i];
      waits[i] = makers_[i].size();
      for (const std::size_t maker : makers_[i]) users[maker].push_back(i);
      if (waits[i] == 0) ready.push_back(i);
    }
    for (std::size_t next = 0; next < ready.size(); ++next) {
      const std::size_t i = ready[next];
      if (!makers_[i].empty()) {
        Fields fields;
        fields.add(own_[i]);
        for (const std::size_t maker : makers_[i]) fields.add(tasks_[maker].identity);
        tasks_[i].identity = fields.hex();
      }
      for (const std::size_t user : users[i])
        if (--waits[user] == 0) ready.push_back(user);
    }
  }

  std::vector<TaskSpec>& tasks_;
  const std::string& start_;
  InputHasher& hasher_;
  std::vector<std::string> own_;
  std::vector<std::vector<std::size_t>> makers_;
};

}  // namespace

Result<void> set_identities(std::vector<TaskSpec>& tasks, const std::string& start_directory, InputHasher& hasher) {
  return Identities(tasks, start_directory, hasher).run();
}

}  // namespace headroom::batch
