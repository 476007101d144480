// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_slurm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/answers.h"
#include "base/child.h"
#include "base/fd.h"
#include "base/filesystem.h"
#include "base/fnv.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "batch/journal.h"
#include "batch/place.h"
#include "batch/prepare.h"
#include "batch/shared_work.h"
#include "batch/slurm_jobs.h"
#include "cli/batch_shared.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "live/signals.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

constexpr Nanos kLost = 120 * kSecond;    // Slurm may learn of a job so long after sbatch was asked
constexpr Nanos kRarest = 180 * kSecond;  // between two looks
constexpr Nanos kUnheard = 90 * kSecond;  // a job that runs and whose worker says nothing

// One launcher, from what was asked for to the end of its jobs.
class SlurmBatch {
 public:
  SlurmBatch(const BatchCommand& command, Signals& signals) : command_(command), signals_(signals) {}
  Result<int> run();

 private:
  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<int> dry_run();
  [[nodiscard]] Result<void> lock();
  [[nodiscard]] Result<void> settle();
  [[nodiscard]] Result<void> submit();
  [[nodiscard]] bool nothing_is_left() const;
  void give_back_for_the_dead() const;
  [[nodiscard]] Result<int> follow();
  [[nodiscard]] Result<std::vector<batch::SlurmElement>> elements() const;
  [[nodiscard]] std::string how_far() const;
  [[nodiscard]] int ended() const;
  void say_who_is_silent(const std::vector<batch::SlurmElement>& elements);
  [[nodiscard]] bool pause(Nanos time) const;  // false: a signal came
  [[nodiscard]] std::string path(std::string_view below) const { return fmt::format("{}/slurm/{}", folder_, below); }
  [[nodiscard]] Result<void> note(const std::string& line) const;

  const BatchCommand& command_;
  Signals& signals_;
  std::string folder_;
  std::vector<TaskSpec> tasks_;
  batch::SlurmOrder order_;
  std::vector<batch::SlurmRecord> records_;
  Fd lock_;
  bool told_of_silence_ = false;
};

Result<void> SlurmBatch::prepare() {
  constexpr std::string_view kSlurm = "slurm";
  const std::string& on = command_.on;
  if (on != kSlurm && !on.starts_with("slurm:"))
    return fail(Errc::kInvalidInput, fmt::format("--on {}: Headroom knows no such place", on),
                "--on slurm, or --on slurm:PARTITION");
  if (command_.jobs < 1)
    return fail(Errc::kInvalidInput, "--on slurm: how many jobs is not said",
                "--jobs N: so many jobs at most, each with the GPUs of one node that --slurm asks for");
  if (command_.json || command_.follow || command_.hooks.any() || !command_.live.output.empty())
    return fail(Errc::kInvalidInput, "--on slurm goes with no --json, --follow, --output, --on-end or --on-finding",
                "headroom batch status --json tells how far it is; recordings lie in workers/ of the batch's folder");
  if (!command_.batch.words.empty() && command_.batch.words[0] == "-")
    return fail(Errc::kInvalidInput, "--on slurm: the tasks come from standard input, which no job has",
                "write them into a file");
  HR_TRY(const batch::Prepared batch, batch::read_batch(command_.batch));
  folder_ = batch.folder;
  tasks_ = batch.set.tasks;
  HR_TRYV(answers(folder_));
  if (!batch::is_shared(folder_) && ::access(batch::journal_path(folder_).c_str(), F_OK) == 0)
    return fail(Errc::kInvalidInput, fmt::format("the batch in {} was begun by one machine alone", folder_),
                "--folder names another one; or go on without --on");
  for (const char* program : {"sbatch", "squeue"})
    if (!find_program(program))
      return fail(Errc::kNotFound,
                  fmt::format("{} is not here: this is no machine from which Slurm takes jobs", program),
                  "run this on a login node; on one machine: without --on");
  std::error_code error;
  const std::string program = fs::read_symlink("/proc/self/exe", error).string();
  if (error) return fail(Errc::kIo, "the program's own file cannot be told", "is /proc mounted?");
  BatchCommand worker = command_;
  worker.on.clear(), worker.slurm.clear(), worker.jobs = 0, worker.worker.clear();
  worker.shared = true;
  worker.batch.folder = folder_;
  std::vector<std::string> words = command_words(worker);
  words[0] = program;
  order_.partition = on.size() > kSlurm.size() ? on.substr(kSlurm.size() + 1) : "";
  order_.jobs = std::min(static_cast<std::size_t>(command_.jobs), tasks_.size());
  for (const std::string& options : command_.slurm)
    for (const auto word : split(options, ' '))
      if (!word.empty()) order_.options.emplace_back(word);
  order_.script = path("job.sh");
  order_.log = path("%A_%a.log");
  HR_TRYV(batch::make_shared_folder(folder_));
  if (!command_.batch.trust_folder) HR_TRYV(batch::check_own(folder_));
  HR_TRYV(make_private_folder(path("")));
  return write_file(order_.script, batch::slurm_script(words));
}

// Another launcher of this batch would submit as well.
Result<void> SlurmBatch::lock() {
  lock_ = Fd(::open(path("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) return tl::unexpected(errno_error(fmt::format("open {}", path("lock"))));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::kBusy, fmt::format("another headroom batch --on slurm is at work in {}", folder_),
                "headroom batch status shows how far it is");
  return {};
}

Result<void> SlurmBatch::note(const std::string& line) const {
  const Fd file(::open(path("jobs").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return tl::unexpected(errno_error(fmt::format("open {}", path("jobs"))));
  HR_TRYV(write_all(file.get(), line));
  if (::fsync(file.get()) != 0) return tl::unexpected(errno_error(fmt::format("write {}", path("jobs"))));
  return {};
}

Result<std::vector<batch::SlurmElement>> SlurmBatch::elements() const {
  HR_TRY(const std::string text,
         batch::ask_slurm({"squeue", "-h", "-n", order_.name, "-o", std::string(batch::kSqueueFormat)}));
  return batch::parse_squeue(text);
}

// What an earlier call of this command has submitted is found again by its name. It may have died between asking Slurm
// and noting the number.
Result<void> SlurmBatch::settle() {
  records_ = batch::parse_records(read_file(path("jobs")).value_or(""));
  if (!records_.empty() && !records_.back().refused) {
    order_.name = records_.back().name;
    for (bool told = false;;) {
      HR_TRY(const auto there, elements());
      if (!there.empty()) {
        say(fmt::format("jobs of an earlier call are there: {}", batch::slurm_words(there)), "");
        const auto id = parse_number<std::int64_t>(std::string_view(there[0].id).substr(0, there[0].id.find('_')));
        return records_.back().id || !id ? Result<void>() : note(batch::submitted_line(order_.name, *id));
      }
      const Nanos age = realtime_now() - records_.back().intended_seconds * kSecond;
      if (records_.back().id || age < 0 || age > kLost) break;
      if (!std::exchange(told, true))
        say("an earlier call died while it submitted; waiting whether Slurm has its jobs", "");
      if (!pause(5 * kSecond)) return fail(Errc::kIo, "interrupted");
    }
  }
  give_back_for_the_dead();
  return submit();
}

// Whose job Slurm no longer has is over, however it ended: nobody has to wait until it was silent for long. A job that
// is requeued is one that Slurm has.
void SlurmBatch::give_back_for_the_dead() const {
  const std::vector<batch::WorkerNow> workers = batch::workers_now(folder_);
  const bool any = std::any_of(workers.begin(), workers.end(), [](const batch::WorkerNow& worker) {
    return worker.pieces > 0 && batch::job_of_worker(worker.name);
  });
  if (!any) return;
  const auto text = batch::ask_slurm({"squeue", "-h", "-r", "-t", "all", "-o", "%A|%T"});
  if (!text) return;
  std::set<std::int64_t> there;
  for (const auto line : split(*text, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() != 2 || !batch::is_there(fields[1])) continue;
    if (const auto job = parse_number<std::int64_t>(fields[0])) there.insert(*job);
  }
  for (const batch::WorkerNow& worker : workers)
    if (const auto job = batch::job_of_worker(worker.name); job && worker.pieces > 0 && !there.contains(*job))
      batch::SharedWork::give_back_for(folder_, worker.name);
}

// Every task, as it is now, has succeeded.
bool SlurmBatch::nothing_is_left() const {
  if (!batch::is_shared(folder_)) return false;
  const auto now = batch::shared_progress(folder_);
  const auto known = batch::shared_tasks(folder_);
  if (!known || now.failed > 0 || now.ended < now.tasks) return false;
  std::unordered_map<std::string, std::string> identities;
  for (const batch::SharedTask& task : *known) identities[task.name] = task.identity;
  return std::all_of(tasks_.begin(), tasks_.end(), [&](const TaskSpec& task) {
    const auto found = identities.find(task.name);
    return found != identities.end() && found->second == task.identity;
  });
}

Result<void> SlurmBatch::submit() {
  order_.name = fmt::format("hr-{:08x}-g{}", fnv1a(folder_) >> 32, records_.size());
  HR_TRYV(note(batch::intended_line(order_.name, realtime_now() / kSecond)));
  auto said = batch::ask_slurm(batch::sbatch_words(order_));
  if (!said) {
    // One that gave no answer may have taken them all the same.
    if (said.error().code == Errc::kIo) HR_TRYV(note(batch::refused_line(order_.name, realtime_now() / kSecond)));
    said.error().hint = said.error().code == Errc::kIo
                            ? "nothing was submitted; --dry-run shows what Slurm is asked for"
                            : "it may have taken the jobs: the same command looks for them";
    return tl::unexpected(said.error());
  }
  const auto id = batch::submitted_id(*said);
  if (!id)
    return fail(Errc::kIo, fmt::format("sbatch answered '{}', which is no number of a job", visible(trim(*said))));
  HR_TRYV(note(batch::submitted_line(order_.name, *id)));
  say(fmt::format("Slurm has {} as {} ({}); Ctrl-C leaves them alone", count_of(order_.jobs, "job"), *id, order_.name),
      "");
  return {};
}

Result<int> SlurmBatch::dry_run() {
  order_.name = fmt::format("hr-{:08x}-g0", fnv1a(folder_) >> 32);
  std::vector<std::string> words = batch::sbatch_words(order_);
  put(fmt::format("{} for {}; the batch's folder is {}\n{}\n\n{}:\n{}", count_of(tasks_.size(), "task"),
                  count_of(order_.jobs, "job"), visible(folder_), visible(typed_line(words)), visible(order_.script),
                  visible_lines(read_file(order_.script).value_or(""))));
  words.insert(words.begin() + 1, "--test-only");
  std::erase(words, "--parsable");
  const auto test = batch::ask_slurm(std::move(words));
  if (!test) return tl::unexpected(test.error());
  put("Slurm would take them.\n");
  return kExitOk;
}

bool SlurmBatch::pause(Nanos time) const {
  pollfd ready{signals_.fd(), POLLIN, 0};
  return ::poll(&ready, 1, static_cast<int>(time / kMillisecond)) == 0;
}

std::string SlurmBatch::how_far() const {
  const auto now = batch::shared_progress(folder_);
  return fmt::format("{} of {} ended{}", now.ended, count_of(now.tasks, "task"),
                     now.failed > 0 ? fmt::format(", {} did not succeed", now.failed) : "");
}

// Files that one node sees and another does not, a program that cannot run there.
void SlurmBatch::say_who_is_silent(const std::vector<batch::SlurmElement>& elements) {
  if (told_of_silence_ || !batch::workers_now(folder_).empty() || batch::shared_progress(folder_).ended > 0) return;
  const auto runs =
      std::find_if(elements.begin(), elements.end(), [](const auto& one) { return one.state == "RUNNING"; });
  if (runs == elements.end()) return;
  told_of_silence_ = true;
  say(fmt::format("job {} runs on {}, and nothing was heard of its worker", runs->id, runs->node),
      fmt::format("does that node see {}? its log: {}", folder_, path("")));
}

Result<int> SlurmBatch::follow() {
  std::string told, trouble;
  const Nanos begin = boottime_now();
  for (Nanos between = command_.poll;;) {
    const auto there = elements();
    const std::string now = there ? fmt::format("{}; {}", batch::slurm_words(*there), how_far()) : "";
    if (!there && std::exchange(trouble, there.error().what) != there.error().what)
      say(fmt::format("Slurm gives no answer at {} UTC: {}", clock_time(realtime_now()), there.error().what),
          "its jobs go on by themselves; it is asked again");
    if (there) {
      trouble.clear();
      if (now != told || there->empty()) give_back_for_the_dead();
      if (there->empty()) return ended();
      if (boottime_now() - begin > kUnheard) say_who_is_silent(*there);
    }
    const bool news = there && now != told;
    if (news && !command_.live.quiet) (void)write_all(STDERR_FILENO, fmt::format("- {}\n", now));
    if (news) told = now;
    between = news ? command_.poll : std::min(kRarest, 2 * between);
    if (pause(between)) continue;
    say("the jobs go on",
        fmt::format("headroom batch status --folder {}; headroom batch stop --folder {}; scancel -n {}",
                    typed_word(folder_), typed_word(folder_), order_.name));
    return kExitInterrupted;
  }
}

int SlurmBatch::ended() const {
  const bool well = nothing_is_left();
  std::string text = "No job is left.\n" + batch_words(batch::shared_progress(folder_), folder_);
  if (!well)
    text += fmt::format("What the jobs printed: {}*.log. The same command submits jobs for the rest.\n", path(""));
  put(text);
  return well ? kExitOk : kExitFailed;
}

Result<int> SlurmBatch::run() {
  HR_TRYV(prepare());
  if (command_.dry_run) return dry_run();
  HR_TRYV(lock());
  if (nothing_is_left()) return ended();
  HR_TRYV(settle());
  return follow();
}

}  // namespace

Result<int> batch_on_slurm(const BatchCommand& command) {
  HR_TRY(Signals signals, Signals::block({SIGINT, SIGTERM, SIGHUP}));
  return SlurmBatch(command, signals).run();
}

}  // namespace headroom::cli
