// SPDX-License-Identifier: Apache-2.0
#include "batch/shared_work.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/json.h"
#include "base/strings.h"
#include "batch/journal.h"
#include "scheduler/order.h"

namespace headroom::batch {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPieces = 20'000;  // of a round: files of one folder
constexpr Nanos kBetweenLooks = 30 * kSecond;

// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

std::optional<Nanos> written_at(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec;
}

// By the clock of whoever serves the file, which is that of every file in the folder; or at Unix time `at`.
Result<void> touch(const std::string& path, std::optional<Nanos> at = {}) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  const timespec given{.tv_sec = at.value_or(0) / kSecond, .tv_nsec = at.value_or(0) % kSecond};
  const std::array times{given, given};
  if (!file || ::futimens(file.get(), at ? times.data() : nullptr) != 0)
    return tl::unexpected(errno_error(fmt::format("touch {}", path)));
  return {};
}

// A file server may carry out what it is asked twice: that the second time failed is no failure.
bool moves(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  const int error = errno;
  const bool moved = !exists(from) && exists(to);
  errno = error;
  return moved;
}

// What a piece's file says of its tasks, by their places in it: "succeeded 0 2", "failed 1".
std::string text_of(const SharedPiece& tasks, const SharedWork::Ends& ends) {
  const auto line = [&](std::string_view word, const std::set<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (names.contains(tasks[i].name)) text += fmt::format(" {}", i);
    return text.empty() ? text : fmt::format("{}{}\n", word, text);
  };
  return line("succeeded", ends.succeeded) + line("failed", ends.failed);
}

SharedWork::Ends ends_in(std::string_view text, const SharedPiece& tasks) {
  SharedWork::Ends ends;
  for (const auto line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words[0] != "succeeded" && words[0] != "failed") continue;
    for (std::size_t i = 1; i < words.size(); ++i)
      if (const auto place = parse_number<std::size_t>(words[i]); place && *place < tasks.size())
        (words[0] == "failed" ? ends.failed : ends.succeeded).insert(tasks[*place].name);
  }
  return ends;
}

std::string round_folder(std::size_t round) { return fmt::format("round-{}", round); }

struct PieceName {
  std::size_t round = 0, number = 0;
};
std::string text_of(PieceName piece) { return fmt::format("{}-{:06}", piece.round, piece.number); }
std::optional<PieceName> piece_of(std::string_view name) {
  const auto parts = split(name, '-');
  if (parts.size() != 2) return std::nullopt;
  const auto round = parse_number<std::size_t>(parts[0]), number = parse_number<std::size_t>(parts[1]);
  if (!round || !number) return std::nullopt;
  return PieceName{*round, *number};
}

// Tasks that come after one another belong together. In order of their first task, those of higher priority first.
std::vector<std::vector<std::size_t>> components(const std::vector<TaskSpec>& tasks, const scheduler::TaskPlan& plan) {
  std::vector<std::size_t> of(tasks.size());
  std::iota(of.begin(), of.end(), std::size_t{0});
  const auto root = [&](std::size_t task) {
    while (of[task] != task) task = of[task] = of[of[task]];
    return task;
  };
  for (std::size_t task = 0; task < tasks.size(); ++task)
    for (const TaskIndex before : plan.tasks[task].after) {
      const std::size_t one = root(task), other = root(before);
      of[std::max(one, other)] = std::min(one, other);
    }
  std::map<std::size_t, std::vector<std::size_t>> by_root;
  for (std::size_t task = 0; task < tasks.size(); ++task) by_root[root(task)].push_back(task);
  std::vector<std::vector<std::size_t>> all;
  for (auto& [first, members] : by_root) all.push_back(std::move(members));
  const auto priority = [&](const std::vector<std::size_t>& members) {
    int highest = tasks[members.front()].priority;
    for (const std::size_t task : members) highest = std::max(highest, tasks[task].priority);
    return highest;
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return priority(a) > priority(b); });
  return all;
}

Result<std::vector<SharedPiece>> pieces_of_round(const std::string& folder, std::size_t round) {
  const std::string path = fmt::format("{}/shared/{}/tasks", folder, round_folder(round));
  HR_TRY(const std::string text, read_file(path));
  std::vector<SharedPiece> pieces;
  for (const auto line : split(text, '\n')) {
    if (line.empty()) continue;
    auto piece = parse_piece(line);
    if (!piece) return fail(Errc::kCorrupt, fmt::format("{}: line {} names no tasks", path, pieces.size() + 1));
    pieces.push_back(std::move(*piece));
  }
  return pieces;
}

}  // namespace

bool is_shared(const std::string& folder) { return exists(folder + "/shared/round-0/tasks"); }

std::string folder_of_worker(const std::string& folder, const std::string& worker) {
  return fmt::format("{}/workers/{}", folder, worker);
}

std::vector<std::string> workers_of(const std::string& folder) {
  std::vector<std::string> names = names_in(folder + "/workers");
  std::erase_if(names, [&](const std::string& name) {
    return !is_worker_name(name) || !exists(journal_path(folder_of_worker(folder, name)));
  });
  return names;
}

bool is_worker_name(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kOthers = "._-";
  return !name.empty() && name.size() <= kLongest && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  kOthers.find(c) != std::string_view::npos;
         });
}

std::string piece_line(const SharedPiece& piece) {
  nlohmann::json list = nlohmann::json::array();
  for (const SharedTask& task : piece) list.push_back({task.name, task.identity, task.group});
  return json_text(list) + "\n";
}

std::optional<SharedPiece> parse_piece(std::string_view line) {
  const auto list = parse_json<nlohmann::json>(line);
  if (!list.is_array() || list.empty()) return std::nullopt;
  SharedPiece piece;
  for (const auto& one : list) {
    const bool fits = one.is_array() && one.size() == 3 &&
                      std::all_of(one.begin(), one.end(), [](const auto& text) { return text.is_string(); });
    if (!fits) return std::nullopt;
    piece.push_back(
        {one[0].template get<std::string>(), one[1].template get<std::string>(), one[2].template get<std::string>()});
  }
  return piece;
}

Result<std::vector<SharedTask>> shared_tasks(const std::string& folder) {
  std::vector<SharedTask> tasks;
  std::unordered_map<std::string, std::size_t> place;
  for (std::size_t round = 0; exists(fmt::format("{}/shared/{}", folder, round_folder(round))); ++round) {
    HR_TRY(const std::vector<SharedPiece> pieces, pieces_of_round(folder, round));
    for (const SharedPiece& piece : pieces)
      for (const SharedTask& task : piece) {
        const auto [known, is_new] = place.emplace(task.name, tasks.size());
        if (is_new)
          tasks.push_back(task);
        else
          tasks[known->second] = task;
      }
  }
  return tasks;
}

std::vector<WorkerNow> workers_now(const std::string& folder) {
  const std::string shared = folder + "/shared";
  std::set<std::string> names;
  for (const std::string& where : {std::string("/claimed"), std::string("/alive")})
    for (std::string& name : names_in(shared + where))
      if (is_worker_name(name)) names.insert(std::move(name));
  std::vector<WorkerNow> workers;
  for (const std::string& name : names) {
    WorkerNow worker{.name = name, .pieces = names_in(fmt::format("{}/claimed/{}", shared, name)).size(), .heard = {}};
    if (const auto at = written_at(fmt::format("{}/alive/{}", shared, name)))
      worker.heard = std::max<Nanos>(0, realtime_now() - *at);
    if (worker.pieces > 0 || worker.heard) workers.push_back(std::move(worker));
  }
  return workers;
}

namespace {

// Where each task stands, by the files of the last piece that has it.
class TasksNow {
 public:
  explicit TasksNow(const std::string& folder) {
    while (exists(fmt::format("{}/shared/{}", folder, round_folder(rounds_.size()))))
      rounds_.push_back(pieces_of_round(folder, rounds_.size()).value_or(std::vector<SharedPiece>()));
    for (std::size_t round = 0; round < rounds_.size(); ++round)
      for (const SharedPiece& piece : rounds_[round])
        for (const SharedTask& task : piece) tasks_[task.name] = {.round = round};
  }

  void read_done(const std::string& where) {
    each_in(where, [](Now& now, bool failed) { now.ended = true, now.failed = failed; });
  }
  void read_claimed(const std::string& where) {
    each_in(where, [](Now& now, bool) { now.claimed = !now.ended; });
  }

  [[nodiscard]] SharedProgress progress() const {
    SharedProgress progress{.tasks = tasks_.size()};
    for (const auto& [name, now] : tasks_) {
      if (now.ended) ++progress.ended;
      if (now.failed) ++progress.failed;
      if (now.claimed) ++progress.claimed;
    }
    return progress;
  }

 private:
  struct Now {
    std::size_t round = 0;
    bool ended = false, failed = false, claimed = false;
  };

  [[nodiscard]] const SharedPiece* piece_called(const std::string& name) const {
    const auto piece = piece_of(name);
    if (!piece || piece->round >= rounds_.size() || piece->number >= rounds_[piece->round].size()) return nullptr;
    return &rounds_[piece->round][piece->number];
  }

  template <class Note>
  void each_in(const std::string& where, const Note& note) {
    for (const std::string& name : names_in(where)) {
      const SharedPiece* piece = piece_called(name);
      if (piece == nullptr) continue;
      const SharedWork::Ends ends = ends_in(read_file(fmt::format("{}/{}", where, name)).value_or(""), *piece);
      for (const SharedTask& task : *piece)
        if (Now& now = tasks_.at(task.name); now.round == piece_of(name)->round)
          note(now, ends.failed.contains(task.name));
    }
  }

  std::vector<std::vector<SharedPiece>> rounds_;
  std::unordered_map<std::string, Now> tasks_;
};

}  // namespace

SharedProgress shared_progress(const std::string& folder, const std::string& except) {
  TasksNow tasks(folder);
  tasks.read_done(folder + "/shared/done");
  for (const WorkerNow& worker : workers_now(folder))
    if (worker.name != except) tasks.read_claimed(fmt::format("{}/shared/claimed/{}", folder, worker.name));
  return tasks.progress();
}

// For this user alone, each of them.
Result<void> make_shared_folder(const std::string& folder) {
  for (const std::string& one : {folder, folder + "/shared", folder + "/workers"}) HR_TRYV(make_private_folder(one));
  return {};
}

Result<void> ask_all_to_stop(const std::string& folder) { return touch(folder + "/shared/stop"); }

std::string SharedWork::path(std::string_view below) const { return fmt::format("{}/shared/{}", folder_, below); }

Result<SharedWork> SharedWork::open(const std::string& folder, Worker worker, std::vector<TaskSpec> tasks) {
  if (!is_worker_name(worker.name))
    return fail(Errc::kInvalidInput, fmt::format("'{}' cannot be the name of a worker", worker.name),
                "letters, digits, dots, dashes and underscores, 64 at most");
  if (exists(journal_path(folder)))
    return fail(Errc::kInvalidInput, fmt::format("the batch in {} was begun by one machine alone", folder),
                "--folder names another one; or go on without --shared");
  SharedWork work(folder, std::move(worker));
  for (const TaskSpec& task : tasks) work.own_[task.name] = task;
  HR_TRYV(work.make_folders());
  HR_TRYV(work.beat());
  HR_TRYV(work.read_rounds());
  for (const std::string& before : work.worker_.before) work.take_over(before);
  HR_TRYV(work.divide(tasks));
  return work;
}

Result<void> SharedWork::make_folders() {
  HR_TRYV(make_shared_folder(folder_));
  for (const std::string& below : {path("claimed"), path("claimed/" + worker_.name), path("done"), path("alive")})
    HR_TRYV(make_private_folder(below));
  // Whoever comes after everybody was told to stop begins anew.
  const auto asked = written_at(path("stop"));
  const std::vector<WorkerNow> there = workers_now(folder_);
  const bool somebody = std::any_of(there.begin(), there.end(), [](const auto& one) { return one.heard.has_value(); });
  if (asked && !somebody) (void)::unlink(path("stop").c_str());
  return {};
}

Result<void> SharedWork::read_rounds() {
  for (std::size_t round = rounds_.size(); exists(path(round_folder(round))); ++round) {
    HR_TRY(std::vector<SharedPiece> pieces, pieces_of_round(folder_, round));
    for (const SharedPiece& piece : pieces)
      for (const SharedTask& task : piece) last_round_[task.name] = round;
    rounds_.push_back(std::move(pieces));
    started_by_.push_back(read_file(path(round_folder(round) + "/started_by")).value_or(""));
  }
  return {};
}

std::unordered_map<std::string, SharedWork::Known> SharedWork::known_tasks() const {
  std::unordered_map<std::string, Known> known;
  const std::vector<std::string> there = names_in(path("done"));
  for (std::size_t round = 0; round < rounds_.size(); ++round)
    for (std::size_t number = 0; number < rounds_[round].size(); ++number) {
      const SharedPiece& piece = rounds_[round][number];
      const std::string name = text_of(PieceName{round, number});
      std::optional<std::string> done;
      if (std::binary_search(there.begin(), there.end(), name)) done = read_file(path("done/" + name)).value_or("");
      const std::set<std::string> failed = ends_in(done.value_or(""), piece).failed;
      const bool late = !worker_.started_by.empty() && started_by_[round] == worker_.started_by;
      for (const SharedTask& task : piece) {
        const bool fails = failed.contains(task.name);
        known[task.name] = {task.identity, fails && !late, done.has_value() && !fails};
      }
    }
  return known;
}

// Those that are in no piece, and those that did not succeed in the last one that had them.
std::vector<TaskSpec> SharedWork::left_of(const std::vector<TaskSpec>& tasks) {
  const std::unordered_map<std::string, Known> known = known_tasks();
  std::vector<TaskSpec> left;
  std::map<std::string, std::vector<std::string>> groups;
  for (const TaskSpec& task : tasks) {
    groups[task.group].push_back(task.name);
    const auto found = known.find(task.name);
    if (found == known.end() || found->second.again || found->second.identity != task.identity) left.push_back(task);
  }
  // What one comes after is divided with it, or has succeeded: else nobody would wait for it.
  std::set<std::string> here;
  const auto is_kept = [&](const std::string& name) {
    const auto found = known.find(name);
    return here.contains(name) || (found != known.end() && found->second.succeeded);
  };
  const auto are_kept = [&](const std::string& name) {
    const auto group = groups.find(name);
    if (own_.contains(name) || group == groups.end()) return is_kept(name);
    return std::all_of(group->second.begin(), group->second.end(), is_kept);
  };
  waiting_ = 0;
  for (std::size_t gone = 1; gone > 0; waiting_ += gone) {
    here.clear();
    for (const TaskSpec& task : left) here.insert(task.name);
    gone = std::erase_if(
        left, [&](const TaskSpec& task) { return !std::all_of(task.after.begin(), task.after.end(), are_kept); });
  }
  return left;
}

Result<void> SharedWork::divide(const std::vector<TaskSpec>& tasks) {
  for (;;) {
    HR_TRYV(read_rounds());
    const std::vector<TaskSpec> left = left_of(tasks);
    if (left.empty()) return {};
    HR_TRY(const bool added, add_round(left));
    if (added) return read_rounds();
  }
}

// False: another worker was sooner. What one comes after and succeeded earlier is no condition any more.
Result<bool> SharedWork::add_round(const std::vector<TaskSpec>& tasks) {
  std::vector<TaskSpec> round = tasks;
  if (!rounds_.empty()) {
    std::set<std::string> here;
    for (const TaskSpec& task : round) here.insert(task.name), here.insert(task.group);
    for (TaskSpec& task : round)
      std::erase_if(task.after, [&](const std::string& name) { return !here.contains(name); });
  }
  HR_TRY(const scheduler::TaskPlan plan, scheduler::plan_tasks(round));
  const auto all = components(round, plan);
  const std::size_t each = (all.size() + kMostPieces - 1) / kMostPieces;
  const std::string made = path(fmt::format("{}.{}", round_folder(rounds_.size()), worker_.name));
  std::error_code ignored;
  fs::remove_all(made, ignored);
  HR_TRYV(make_private_folder(made));
  HR_TRYV(make_private_folder(made + "/todo"));
  std::string text;
  std::size_t number = 0;
  for (std::size_t first = 0; first < all.size(); first += each, ++number) {
    SharedPiece piece;
    for (std::size_t i = first; i < std::min(first + each, all.size()); ++i)
      for (const std::size_t task : all[i])
        piece.push_back({round[task].name, round[task].identity, round[task].group});
    text += piece_line(piece);
    HR_TRYV(touch(fmt::format("{}/todo/{:06}", made, number)));
  }
  HR_TRYV(write_file(made + "/started_by", worker_.started_by));
  HR_TRYV(write_file(made + "/tasks", text));
  const std::string there = path(round_folder(rounds_.size()));
  if (moves(made, there)) return true;
  const int error = errno;
  fs::remove_all(made, ignored);
  if (exists(there)) return false;
  errno = error;
  return tl::unexpected(errno_error(fmt::format("make {}", there)));
}

Result<SharedPiece> SharedWork::piece_named(const std::string& name) const {
  const auto piece = piece_of(name);
  if (!piece || piece->round >= rounds_.size() || piece->number >= rounds_[piece->round].size())
    return fail(Errc::kCorrupt, fmt::format("{} holds a piece '{}' that no round has", path("claimed"), name));
  return rounds_[piece->round][piece->number];
}

// What has changed since is in a later round; the rest is what this worker's command says.
bool SharedWork::is_for_this_worker(const SharedPiece& piece, std::size_t round) const {
  return std::all_of(piece.begin(), piece.end(), [&](const SharedTask& task) {
    const auto own = own_.find(task.name);
    return last_round_.at(task.name) > round || (own != own_.end() && own->second.identity == task.identity);
  });
}

Result<SharedWork::Piece> SharedWork::taken(const std::string& name) {
  HR_TRY(const SharedPiece tasks, piece_named(name));
  const std::size_t round = piece_of(name)->round;
  const auto text = read_file(path(fmt::format("claimed/{}/{}", worker_.name, name)));
  const std::set<std::string> succeeded = ends_in(text.value_or(""), tasks).succeeded;
  Piece piece{.name = name, .tasks = {}};
  std::set<std::string> here;
  for (const SharedTask& task : tasks) {
    if (succeeded.contains(task.name) || last_round_.at(task.name) > round) continue;
    piece.tasks.push_back(own_.at(task.name));
    here.insert({task.name, task.group});
  }
  // What is not in the piece has succeeded: it was divided so.
  for (TaskSpec& task : piece.tasks)
    std::erase_if(task.after, [&](const std::string& one) { return !here.contains(one); });
  return piece;
}

Result<std::vector<SharedWork::Piece>> SharedWork::mine() {
  std::vector<Piece> pieces;
  for (const std::string& name : names_in(path("claimed/" + worker_.name))) {
    if (!piece_of(name)) continue;  // half a file that a dead one left
    HR_TRY(const SharedPiece tasks, piece_named(name));
    if (!is_for_this_worker(tasks, piece_of(name)->round)) {
      HR_TRYV(leave_to_others(name));
      continue;
    }
    HR_TRY(Piece piece, taken(name));
    if (piece.tasks.empty())
      HR_TRYV(finish(name, {}));
    else
      pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::size_t SharedWork::ahead(std::size_t enough) const {
  return listed_.size() < workers_ * enough ? std::min<std::size_t>(1, enough) : enough;
}

void SharedWork::list_todo() {
  workers_ = std::max<std::size_t>(1, names_in(path("claimed")).size());
  for (std::size_t round = 0; round < rounds_.size(); ++round)
    for (const std::string& number : names_in(path(round_folder(round) + "/todo")))
      if (const auto parsed = parse_number<std::size_t>(std::string_view(number));
          parsed && *parsed < rounds_[round].size())
        listed_.push_back(text_of({round, *parsed}));
}

std::string SharedWork::todo_of(const std::string& name) const {
  const auto piece = piece_of(name);
  return path(fmt::format("{}/todo/{:06}", round_folder(piece->round), piece->number));
}

// All workers take from the front of the same list, so that most of what one has not taken is behind the first piece
// that is still there: it is found by steps that double, and then halve. What others have given back meanwhile is
// found when the folders are listed again.
void SharedWork::pass_over_the_taken() {
  const auto is_there = [&](std::size_t at) { return exists(todo_of(listed_[at])); };
  if (listed_.empty() || is_there(0)) return;
  std::size_t gone = 0, there = 1;  // positions
  while (there < listed_.size() && !is_there(there)) gone = there, there *= 2;
  there = std::min(there, listed_.size());
  while (there - gone > 1) {
    const std::size_t middle = gone + (there - gone) / 2;
    (is_there(middle) ? there : gone) = middle;
  }
  listed_.erase(listed_.begin(), listed_.begin() + static_cast<std::ptrdiff_t>(there));
}

// The folders are listed when all that was seen in them is used up: of thousands of pieces that is seldom.
Result<std::optional<SharedWork::Piece>> SharedWork::claim_listed() {
  const std::string mine = path("claimed/" + worker_.name);
  HR_TRYV(make_private_folder(mine));  // whoever took this worker for dead has removed it
  for (pass_over_the_taken(); !listed_.empty(); pass_over_the_taken()) {
    const std::string name = std::move(listed_.front());
    listed_.pop_front();
    const auto piece = piece_of(name);
    if (for_others_.contains(name) || !is_for_this_worker(rounds_[piece->round][piece->number], piece->round)) continue;
    const std::string todo = todo_of(name);
    if (!moves(todo, fmt::format("{}/{}", mine, name))) {
      if (errno == ENOENT) continue;  // somebody else was sooner
      return tl::unexpected(errno_error(fmt::format("claim {}", todo)));
    }
    HR_TRY(Piece got, taken(name));
    if (!got.tasks.empty()) return got;
    HR_TRYV(finish(name, {}));  // all of it has succeeded elsewhere
  }
  return std::nullopt;
}

Nanos SharedWork::now() const { return worker_.now ? worker_.now() : boottime_now(); }

// What a dead worker had is not left to the end, and of all workers one looks for it in half a minute or so.
Result<std::optional<SharedWork::Piece>> SharedWork::claim() {
  if (now() >= early_look_) {
    if (early_look_ > 0) {
      HR_TRYV(read_rounds());  // what it had may be of one that was made since
      take_over_silent();
    }
    early_look_ = now() + static_cast<Nanos>(workers_) * kBetweenLooks;
  }
  HR_TRY(std::optional<Piece> piece, claim_listed());
  for (int again = 0; again < 2 && !piece; ++again) {
    if (again > 0) take_over_silent();
    HR_TRYV(read_rounds());
    list_todo();
    HR_TRY(piece, claim_listed());
  }
  return piece;
}

// Of all that it has claimed: back to where everybody finds it. What succeeded with it stays so.
void SharedWork::take_over(const std::string& other) {
  const std::string claimed = path("claimed/" + other);
  const std::vector<std::string> names = names_in(claimed);
  if (names.empty()) return;
  std::set<std::string> succeeded;
  if (const auto contents = read_own_journal(folder_of_worker(folder_, other)))
    for (const KnownTask& task : contents->tasks)
      if (task.state == TaskState::kSucceeded) succeeded.insert(task.name);
  std::vector<std::string> back;
  for (const std::string& name : names) {
    const auto piece = piece_of(name);
    if (!piece) continue;
    const std::string mine = path(fmt::format("claimed/{}/{}", worker_.name, name));
    // By way of ours: two that take over from one must not both put it back.
    if (!moves(fmt::format("{}/{}", claimed, name), mine)) continue;
    if (give_back(name, {.succeeded = succeeded, .failed = {}})) back.push_back(name);
  }
  listed_.insert(listed_.begin(), back.begin(), back.end());
  (void)::rmdir(claimed.c_str());
  (void)::unlink(path("alive/" + other).c_str());
}

void SharedWork::take_over_silent() {
  if (now() < next_look_) return;
  next_look_ = now() + std::min(kBetweenLooks, worker_.silent);
  workers_ = std::max<std::size_t>(1, names_in(path("claimed")).size());
  if (!beat()) return;
  for (const std::string& other : silent_for(worker_.silent)) take_over(other);
}

std::vector<std::string> SharedWork::silent_for(Nanos time) const {
  std::vector<std::string> silent;
  const auto served = written_at(path("alive/" + worker_.name));
  if (!served) return silent;
  for (std::string& other : names_in(path("claimed"))) {
    if (other == worker_.name || !is_worker_name(other)) continue;
    const auto heard = written_at(path("alive/" + other));
    const auto since = heard ? heard : written_at(path("claimed/" + other));
    if (since && *served - *since > time && !names_in(path("claimed/" + other)).empty())
      silent.push_back(std::move(other));
  }
  return silent;
}

bool SharedWork::somebody_is_silent() const { return !silent_for(std::min(2 * kBeat, worker_.silent / 2)).empty(); }

Nanos SharedWork::patience() const { return std::clamp(worker_.silent / 12, 2 * kSecond, 15 * kSecond); }

// What another worker has noted of it stays.
Result<void> SharedWork::note_ends(const std::string& piece, const Ends& ends) {
  const std::string mine = path(fmt::format("claimed/{}/{}", worker_.name, piece));
  HR_TRY(const SharedPiece tasks, piece_named(piece));
  HR_TRY(const std::string before, read_file(mine));
  Ends all = ends_in(before, tasks);
  all.succeeded.insert(ends.succeeded.begin(), ends.succeeded.end());
  all.failed = ends.failed;
  const std::string text = text_of(tasks, all);
  if (text == before) return {};
  return write_file(mine, text);
}

Result<bool> SharedWork::finish(const std::string& piece, const Ends& ends) {
  const std::string mine = path(fmt::format("claimed/{}/{}", worker_.name, piece)), done = path("done/" + piece);
  if (!exists(mine)) return false;  // this worker was not heard of, and another one has taken it over
  HR_TRYV(note_ends(piece, ends));
  bool ours = ::link(mine.c_str(), done.c_str()) == 0;
  if (!ours) {
    if (errno != EEXIST) return tl::unexpected(errno_error(fmt::format("link {}", done)));
    struct stat one {
    }, other{};  // of a file server that was asked twice
    ours = ::stat(mine.c_str(), &one) == 0 && ::stat(done.c_str(), &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
  }
  (void)::unlink(mine.c_str());
  return ours;
}

Result<void> SharedWork::give_back(const std::string& piece, const Ends& ends) {
  const std::string mine = path(fmt::format("claimed/{}/{}", worker_.name, piece));
  if (!exists(mine)) return {};
  HR_TRYV(note_ends(piece, {.succeeded = ends.succeeded, .failed = {}}));
  if (piece_of(piece) && moves(mine, todo_of(piece))) return {};
  return tl::unexpected(errno_error(fmt::format("give {} back", mine)));
}

Result<void> SharedWork::leave_to_others(const std::string& piece) {
  for_others_.insert(piece);
  return give_back(piece, {});
}

Result<void> SharedWork::beat() {
  return touch(path("alive/" + worker_.name), worker_.now ? std::optional(worker_.now()) : std::nullopt);
}

void SharedWork::leave() {
  (void)::unlink(path("alive/" + worker_.name).c_str());
  (void)::rmdir(path("claimed/" + worker_.name).c_str());
}

void SharedWork::give_back_for(const std::string& folder, const std::string& worker) {
  SharedWork work(folder, {.name = "for-" + worker.substr(0, 60)});
  if (!work.make_folders() || !work.read_rounds()) return;
  work.take_over(worker);
  work.leave();
}

bool SharedWork::is_to_stop() const { return exists(path("stop")); }

}  // namespace headroom::batch
