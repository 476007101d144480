// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/filesystem.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "batch/identity.h"
#include "cli/environment.h"
#include "model/slurm.h"
#include "scheduler/order.h"

namespace headroom::cli {

namespace {

// "n1", in a job of Slurm "n1.j4711", below srun with several tasks "n1.j4711.t2"; requeued "n1.j4711.r1".
std::string usual_name(const std::optional<SlurmJob>& job) {
  std::string name = (job && !job->node.empty() ? job->node : host_name()).substr(0, 32);
  for (char& c : name)
    if (!batch::is_worker_name(std::string(1, c)) && c != '.' && c != '-') c = '_';
  if (!job) return name;
  name += fmt::format(".j{}", job->job);
  if (is_one_of_many(*job)) name += fmt::format(".t{}", *job->rank);
  if (job->restarts.value_or(0) > 0) name += fmt::format(".r{}", *job->restarts);
  return name;
}

// Names of earlier runs of this job, perhaps on another machine: Slurm runs none of it twice at a time.
std::vector<std::string> runs_before(const std::string& folder, const SlurmJob& job) {
  std::vector<std::string> names;
  const std::string number = fmt::format("j{}", job.job);
  for (const batch::WorkerNow& worker : batch::workers_now(folder)) {
    const auto parts = split(worker.name, '.');
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i] != number) continue;
      const auto last = parts.back();
      const auto restart = last.starts_with('r') ? parse_number<std::int64_t>(last.substr(1)) : std::nullopt;
      if (restart.value_or(0) < job.restarts.value_or(0)) names.push_back(worker.name);
      break;
    }
  }
  return names;
}

}  // namespace

Result<SharedBatch> SharedBatch::prepare(const BatchCommand& command, const std::string& folder) {
  if (command.batch.fresh)
    return fail(Errc::kInvalidInput, "batch: --shared and --fresh exclude each other: another worker may be at work",
                fmt::format("mv {} somewhere else once none is", typed_word(folder)));
  if (!command.batch.rerun.empty())
    return fail(Errc::kInvalidInput, "batch: --shared and --rerun exclude each other",
                "what did not succeed runs again by itself; other tasks: --folder names another batch");
  batch::SharedWork::Worker worker;
  const auto job = slurm_job(variables_of_batch());
  worker.name = command.worker.empty() ? usual_name(job) : command.worker;
  if (!batch::is_worker_name(worker.name))
    return fail(Errc::kInvalidInput, fmt::format("--worker: '{}' cannot be a name", worker.name),
                "letters, digits, dots, dashes and underscores, 64 at most, first a letter, a digit or an underscore");
  if (job) {
    worker.started_by = fmt::format("slurm {}", job->array_job.value_or(job->job));
    worker.before = runs_before(folder, *job);
  }
  worker.silent = command.silent;
  return SharedBatch(folder, std::move(worker));
}

std::string SharedBatch::recording(const std::string& id) const {
  return fmt::format("{}/{}-{}.hrec", worker_folder(), worker_.name, id.substr(0, 8));
}

Result<void> SharedBatch::begin(batch::Prepared& prepared) {
  for (TaskSpec& task : prepared.set.tasks) task.working_directory = batch::directory_of(task, current_directory());
  HR_TRY(work_, batch::SharedWork::open(folder_, worker_, std::move(prepared.set.tasks)));
  HR_TRY(first_, work_->mine());
  if (first_.empty()) {
    HR_TRY(std::optional<batch::SharedWork::Piece> piece, work_->claim());
    if (piece) first_.push_back(std::move(*piece));
  }
  prepared.set.tasks.clear();
  for (const batch::SharedWork::Piece& piece : first_)
    prepared.set.tasks.insert(prepared.set.tasks.end(), piece.tasks.begin(), piece.tasks.end());
  HR_TRY(prepared.plan, scheduler::plan_tasks(prepared.set.tasks));
  return {};
}

void SharedBatch::feed(batch::BatchOptions& options, const batch::Prepared& prepared, std::size_t enough,
                       batch::Say say) {
  feeder_ = std::make_unique<batch::Feeder>(*work_, *prepared.journal, enough, std::move(say));
  for (std::size_t i = 0; i < prepared.known.size(); ++i)
    if (prepared.known[i].state == TaskState::kSucceeded) feeder_->ended(prepared.known[i].name, TaskState::kSucceeded);
  for (const batch::SharedWork::Piece& piece : first_) feeder_->has(piece);
  options.on_task_end = [feeder = feeder_.get()](const TaskSpec& task, TaskState state) {
    feeder->ended(task.name, state);
  };
  options.more_may_come = [feeder = feeder_.get()] { return feeder->more_may_come(); };
}

void SharedBatch::keep_feeding(Loop& loop, batch::Batch& batch, batch::BatchLoop& batch_loop) {
  constexpr Nanos kBetween = 200 * kMillisecond;
  if (feeder_->look(batch)) batch_loop.interrupt(SIGINT);
  batch.wake();
  batch_loop.woken();
  if (!batch.done())
    loop.after(kBetween, [this, &loop, &batch, &batch_loop] { keep_feeding(loop, batch, batch_loop); });
}

void SharedBatch::end(bool told_to_end) {
  if (feeder_)
    feeder_->put_back(told_to_end);
  else if (work_)
    work_->leave();
}

std::string SharedBatch::begin_words() const {
  const auto now = work_->progress();
  std::string text = fmt::format("worker {} of the batch in {}: {}, of which {} ended, {} with other workers\n",
                                 worker_.name, visible(folder_), count_of(now.tasks, "task"), now.ended, now.claimed);
  if (work_->waiting() > 0)
    text += fmt::format("{} after tasks that have not succeeded yet: the same command takes them later\n",
                        work_->waiting() == 1 ? "1 task comes" : fmt::format("{} tasks come", work_->waiting()));
  return text;
}

std::string SharedBatch::end_words() const { return batch_words(work_->progress(), folder_); }

bool SharedBatch::any_failed() const { return work_->progress().failed > 0; }

std::string batch_words(const batch::SharedProgress& now, const std::string& folder) {
  std::string text = fmt::format("Of the batch's {} {} ended", count_of(now.tasks, "task"), now.ended);
  if (now.failed > 0) text += fmt::format(" ({} did not succeed)", now.failed);
  if (now.claimed > 0) text += fmt::format(", {} with other workers", now.claimed);
  const std::size_t nobodys = now.tasks - std::min(now.tasks, now.ended + now.claimed);
  if (nobodys > 0) text += fmt::format(", {} begun by nobody", nobodys);
  text +=
      fmt::format(".\nheadroom batch table --folder {} has all tasks; headroom fleet {} where the GPUs' time went.\n",
                  typed_word(folder), typed_word(folder));
  return text;
}

}  // namespace headroom::cli
