// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"

// One batch by several workers: each is a `headroom batch` on its own machine, and all see one folder. There is no
// server and no port; names of files say who has what. A piece is a task with all that it comes after and all that
// comes after it, since a worker knows of its own tasks alone.
//
//   shared/round-0/tasks          the tasks of each piece, a line for each: their names and identities
//   shared/round-0/todo/000012    piece 12, which nobody has; in it what of it has ended already (Ends)
//   shared/claimed/NAME/0-000012  the worker NAME has it: a rename, so that one alone can
//   shared/done/0-000012          it has ended: a link, so that one alone can
//   shared/alive/NAME             touched every half a minute; by the clock of whoever serves the files
//   workers/NAME/                 the worker's own batch folder: journal, logs, control socket
//   shared/stop                   somebody wants no worker to start anything more
//
// What a task runs is what a worker's own command says of a task of that name and identity, never what lies in the
// folder: whoever can write there decides in which order, and whether, tasks run, and not what runs; and no environment
// lies there.
//
// A further round is what is run again, or is new, once nobody has anything of it.
namespace headroom::batch {

[[nodiscard]] bool is_shared(const std::string& folder);  // the folder of a batch of several workers
[[nodiscard]] std::string folder_of_worker(const std::string& folder, const std::string& worker);
[[nodiscard]] std::vector<std::string> workers_of(const std::string& folder);  // by name
// Letters, digits, dots, dashes and underscores, 64 at most, none of them first a dot.
[[nodiscard]] bool is_worker_name(std::string_view name);
// A task as the folder knows it.
struct SharedTask {
  std::string name, identity, group;
  bool operator==(const SharedTask&) const = default;
};
using SharedPiece = std::vector<SharedTask>;
[[nodiscard]] std::string piece_line(const SharedPiece& piece);  // with its end
// Nothing: no line of piece_line().
[[nodiscard]] std::optional<SharedPiece> parse_piece(std::string_view line);
// All tasks of all rounds, each once, as it was divided last.
[[nodiscard]] Result<std::vector<SharedTask>> shared_tasks(const std::string& folder);

inline constexpr Nanos kBeat = 30 * kSecond;  // between two touches of alive/NAME

struct WorkerNow {
  std::string name;
  std::size_t pieces = 0;      // that it has claimed
  std::optional<Nanos> heard;  // so long ago; absent: it left by itself, or never was heard of
};
// Those that have claimed something, or were heard of and have not left.
[[nodiscard]] std::vector<WorkerNow> workers_now(const std::string& folder);
// Tasks, each as it was divided last.
struct SharedProgress {
  std::size_t tasks = 0, ended = 0, failed = 0;  // failed: of those that have ended, they did not succeed
  std::size_t claimed = 0;                       // by a worker
};
// `except`: a worker whose claims are not counted.
[[nodiscard]] SharedProgress shared_progress(const std::string& folder, const std::string& except = "");
// The folder itself and what the workers' lie in. Before any of them takes its own.
[[nodiscard]] Result<void> make_shared_folder(const std::string& folder);
[[nodiscard]] Result<void> ask_all_to_stop(const std::string& folder);

class SharedWork {
 public:
  struct Worker {
    std::string name;
    // Earlier runs of this worker's own job, which are over for certain (a job of Slurm that was requeued): their
    // names.
    std::vector<std::string> before;
    // Whoever started it together with others: what failed in a round of theirs is not run again by one that is late.
    std::string started_by;
    Nanos silent = 180 * kSecond;  // a worker that was not heard of for so long is over
    // Unix time of a simulation, in which files are touched. Empty: files have the time of whoever serves them.
    std::function<Nanos()> now;
  };
  // Divides those of `tasks` that are in no piece, and those that did not succeed. `after` must name tasks of `tasks`
  // or groups. What comes after a task that is in a piece and has not succeeded waits for a later call.
  [[nodiscard]] static Result<SharedWork> open(const std::string& folder, Worker worker, std::vector<TaskSpec> tasks);

  // Of a worker that is over for certain: what it had claimed goes back to where everybody finds it.
  static void give_back_for(const std::string& folder, const std::string& worker);

  struct Piece {
    std::string name;
    std::vector<TaskSpec> tasks;  // that have not succeeded with another worker: at least one
  };
  struct Ends {
    std::set<std::string> succeeded, failed;  // names of tasks; skipped and cancelled ones did not succeed
  };
  [[nodiscard]] Result<std::vector<Piece>> mine();  // claimed by an earlier run of this worker
  // Nothing: there is no piece of this worker's tasks that nobody has, and nobody is silent.
  [[nodiscard]] Result<std::optional<Piece>> claim();
  // Of `enough` tasks that a worker would hold beside those that run: where fewer pieces are left than that for each
  // worker, one, so that none waits here while another worker has nothing to do.
  [[nodiscard]] std::size_t ahead(std::size_t enough) const;
  // All of it has ended. False: another worker ended it as well, and was sooner.
  [[nodiscard]] Result<bool> finish(const std::string& piece, const Ends& ends);
  [[nodiscard]] Result<void> give_back(const std::string& piece, const Ends& ends);  // what succeeded stays so
  // Likewise, and it is not claimed again.
  [[nodiscard]] Result<void> leave_to_others(const std::string& piece);
  [[nodiscard]] Result<void> beat();  // I am here
  void leave();                       // what is claimed stays
  // Another one has claimed something and missed a beat or more: it may be over, and is not yet known to be.
  [[nodiscard]] bool somebody_is_silent() const;
  [[nodiscard]] Nanos patience() const;  // between two questions for it: there may be hundreds who ask
  [[nodiscard]] bool is_to_stop() const;

  // `claimed` is that of other workers.
  [[nodiscard]] SharedProgress progress() const { return shared_progress(folder_, worker_.name); }
  [[nodiscard]] std::size_t waiting() const { return waiting_; }  // tasks that open() left for a later call

 private:
  SharedWork(std::string folder, Worker worker) : folder_(std::move(folder)), worker_(std::move(worker)) {}
  [[nodiscard]] std::string path(std::string_view below) const;
  [[nodiscard]] Result<void> make_folders();
  [[nodiscard]] Result<void> divide(const std::vector<TaskSpec>& tasks);
  [[nodiscard]] Result<bool> add_round(const std::vector<TaskSpec>& tasks);
  [[nodiscard]] Result<void> read_rounds();
  // What the last piece that has a task says of it.
  struct Known {
    std::string identity;
    bool again = false, succeeded = false;
  };
  [[nodiscard]] std::unordered_map<std::string, Known> known_tasks() const;
  [[nodiscard]] std::vector<TaskSpec> left_of(const std::vector<TaskSpec>& tasks);
  [[nodiscard]] Result<std::optional<Piece>> claim_listed();
  [[nodiscard]] Nanos now() const;
  void list_todo();
  void pass_over_the_taken();
  [[nodiscard]] std::string todo_of(const std::string& piece) const;
  [[nodiscard]] bool is_for_this_worker(const SharedPiece& piece, std::size_t round) const;
  [[nodiscard]] Result<Piece> taken(const std::string& name);
  [[nodiscard]] Result<SharedPiece> piece_named(const std::string& name) const;
  [[nodiscard]] Result<void> note_ends(const std::string& piece, const Ends& ends);
  void take_over(const std::string& other);
  void take_over_silent();
  // Workers that have claimed something and were heard of longer ago than that, by the clock of whoever serves the
  // files, as of this one's last beat.
  [[nodiscard]] std::vector<std::string> silent_for(Nanos time) const;

  std::string folder_;
  Worker worker_;
  std::unordered_map<std::string, TaskSpec> own_;  // this worker's command's, by name
  std::vector<std::vector<SharedPiece>> rounds_;
  std::map<std::string, std::size_t> last_round_;  // of each task
  std::vector<std::string> started_by_;            // of each round
  std::deque<std::string> listed_;                 // pieces that nobody had, when the folders were listed last
  std::size_t workers_ = 1;                        // that had claimed something then
  std::set<std::string> for_others_;               // pieces
  std::size_t waiting_ = 0;
  Nanos next_look_ = 0;   // for silent ones, at the earliest
  Nanos early_look_ = 0;  // likewise, while there is other work
};

}  // namespace headroom::batch
