// SPDX-License-Identifier: Apache-2.0
#include "host/tree_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/strings.h"
#include "model/cpu_list.h"
#include "model/events.h"
#include "model/losses.h"

namespace headroom::host {

namespace {

constexpr std::size_t kEndedRemembered = 64;
constexpr int kMarkerReads = 32;  // environments read per tick in search of the marker
constexpr int kFactLooks = 16;    // second looks at facts per tick; the rest waits for the next
constexpr int kWaitReads = 8;     // waits looked into per tick
constexpr int kFileLooks = 8;     // looks per tick for open files of GPUs
constexpr int kMostLooks = 6;     // at a process's facts: exec changes them, and a program may rename itself for ever
constexpr Pace kWatched{.dear = 200 * kMillisecond, .files = 100 * kMillisecond};
constexpr Nanos kYoung = kSecond, kJustForked = 50 * kMillisecond, kSecondLook = 200 * kMillisecond;

// A full look costs about 25 us when the caches are cold. These paces keep the looks of one second below about 60
// however large the tree is, and every tick's for small ones.
Pace pace_of(std::size_t processes) {
  constexpr std::size_t kEveryTick = 8, kSmall = 40, kBusyPerSecond = 40, kLightPerSecond = 25, kLongest = 8;
  if (processes <= kEveryTick) return kWatched;
  if (processes <= kSmall) return {0, 2 * kSecond};
  const auto seconds = [&](std::size_t per_second) {
    return static_cast<Nanos>(std::min((processes + per_second - 1) / per_second, kLongest)) * kSecond;
  };
  return {seconds(kBusyPerSecond), seconds(kLightPerSecond)};
}

bool holds(const std::vector<std::int64_t>& numbers, std::int64_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// 128+n for a death by signal n, as shells say it.
int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

bool in_nested_pid_namespace() {
  constexpr ino_t kInitialPidNamespace = 0xEFFFFFFCU;  // PROC_PID_INIT_INO, part of the kernel's ABI
  struct stat namespace_file {};
  return ::stat("/proc/self/ns/pid", &namespace_file) == 0 && namespace_file.st_ino != kInitialPidNamespace;
}

TreeReader::TreeReader(TreeOptions options)
    : options_(std::move(options)),
      proc_(options_.root + "/proc"),
      kernel_(read_kernel_facts(proc_, options_.root.empty())),
      users_(options_.root),
      wait_reader_(options_.root.empty()),
      nested_pid_namespace_(options_.root.empty() && in_nested_pid_namespace()),
      watch_requests_(options_.pids),
      proc_of_ended_(options_.root + "/proc") {
  if (options_.recorder_pid != 0) excluded_.push_back(options_.recorder_pid);
  if (const auto own = proc_.read("self/cmdline")) own_command_ = command_line(*own);
  watching_ = scanning_all_ = options_.most_of_machine > 0;
}

void TreeReader::watch(std::int64_t pid) {
  const std::lock_guard lock(requests_mutex_);
  watch_requests_.push_back(pid);
}

void TreeReader::exclude(std::int64_t pid) {
  const std::lock_guard lock(requests_mutex_);
  exclude_requests_.push_back(pid);
}

void TreeReader::exclude(const std::function<std::int64_t()>& start) {
  const std::lock_guard lock(requests_mutex_);
  if (const std::int64_t pid = start(); pid > 0) exclude_requests_.push_back(pid);
}

void TreeReader::exited(std::int64_t pid, int exit_code) {
  const std::lock_guard lock(requests_mutex_);
  exit_requests_.emplace_back(pid, exit_code);
}

void TreeReader::ended(std::int64_t pid) {
  const std::lock_guard lock(requests_mutex_);
  const Nanos at = boottime_now();
  ProcessProbe probe(pid, std::nullopt, false);
  if (probe.sample(proc_of_ended_, kernel_, kWatched, at) != ProcessProbe::Outcome::kZombie) return;
  last_looks_.push_back({.pid = pid, .at = at, .cells = {probe.cells().begin(), probe.cells().end()}});
}

void TreeReader::read(Nanos at, RecordingSink& sink) {
  marker_reads_left_ = kMarkerReads;
  fact_looks_left_ = kFactLooks;
  // Those of all the machine are looked at one by one: their pipes are not searched for, nor their GPUs.
  wait_reads_left_ = options_.most_of_machine > 0 ? 0 : kWaitReads;
  file_looks_left_ = options_.most_of_machine > 0 ? 0 : kFileLooks;
  take_requests(sink);
  admit_fresh(at, sink);
  sample_all(at, sink);
  if (options_.most_of_machine == 0) read_cpus(at, sink);
}

const TreeReader::Member* TreeReader::find(std::int64_t pid) const {
  const auto found = std::lower_bound(members_.begin(), members_.end(), pid,
                                      [](const Member& member, std::int64_t p) { return member.probe.pid() < p; });
  return found != members_.end() && found->probe.pid() == pid ? &*found : nullptr;
}

TreeReader::Member* TreeReader::find(std::int64_t pid) { return const_cast<Member*>(std::as_const(*this).find(pid)); }

void TreeReader::take_requests(RecordingSink& sink) {
  std::vector<std::int64_t> watched;
  std::vector<std::pair<std::int64_t, int>> exits;
  std::vector<LastLook> last_looks;
  {
    const std::lock_guard lock(requests_mutex_);
    watched.swap(watch_requests_);
    exits.swap(exit_requests_);
    last_looks.swap(last_looks_);
  }
  for (const std::int64_t pid : watched) {
    if (find(pid)) continue;
    watching_ = true;
    roots_.push_back(pid);
    const auto text = proc_.read(fmt::format("{}/stat", pid).c_str());
    const auto stat = text ? parse_pid_stat(*text) : std::nullopt;
    // What we started ourselves is young, and all it started is younger; anything else may have a tree already.
    if (stat && options_.recorder_pid != 0 && stat->ppid == options_.recorder_pid)
      discovery_.rewind_to(pid);
    else
      discovery_.rewind_all(), scanning_all_ = true;
  }
  for (const auto& [pid, code] : exits) {
    if (Member* member = find(pid)) {
      member->exit_code = code;
      continue;
    }
    for (const Ended& ended : ended_)
      if (ended.pid == pid) announce_exit_code(ended.key, code, sink);
  }
  for (const LastLook& last : last_looks) {
    Member* const member = find(last.pid);
    if (member == nullptr) continue;
    sink.add_row(member->source, last.at, last.cells);
    member->ended_at = last.at;
  }
}

void TreeReader::take_exclusions() {
  const std::lock_guard lock(requests_mutex_);
  excluded_.insert(excluded_.end(), exclude_requests_.begin(), exclude_requests_.end());
  exclude_requests_.clear();
}

void TreeReader::admit_fresh(Nanos at, RecordingSink& sink) {
  if (!watching_) return;
  const auto candidates = discovery_.fresh(proc_);
  take_exclusions();  // after the list: a helper that is in it has been named by now, or its start holds the lock
  std::vector<bool> admitted(candidates.size(), false);
  const std::int64_t least = least_ticks(candidates);
  // Parents may come after their children in the list: again until nobody else gets in.
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (admitted[i] || candidates[i].ticks < least || !has_room() || find(candidates[i].pid) ||
          !belongs(candidates[i], at))
        continue;
      admitted[i] = true;
      if (candidates[i].ended) zombies_.push_back(candidates[i].pid);
      more = candidates[i].ended || admit(candidates[i], at, sink) || more;
    }
  }
  // A number of ours that was given to a stranger leads no session of ours any more.
  for (const Candidate& candidate : candidates)
    if (!candidate.ended && !find(candidate.pid)) std::erase(sessions_, candidate.pid);
  roots_.clear();  // found, or gone
  zombies_.clear();
  scanning_all_ = false;
}

std::int64_t TreeReader::least_ticks(std::span<const Candidate> candidates) const {
  const std::size_t room = options_.most_of_machine - std::min(options_.most_of_machine, members_.size());
  if (options_.most_of_machine == 0 || room == 0 || candidates.size() <= room) return 0;
  std::vector<std::int64_t> ticks;
  for (const Candidate& candidate : candidates) ticks.push_back(candidate.ticks);
  const auto last = ticks.begin() + static_cast<std::ptrdiff_t>(room - 1);
  std::nth_element(ticks.begin(), last, ticks.end(), std::greater<>());
  return *last;
}

bool TreeReader::belongs(const Candidate& candidate, Nanos at) {
  if (holds(roots_, candidate.pid)) return true;
  if (holds(excluded_, candidate.pid)) return false;
  if (options_.most_of_machine > 0) return !candidate.ended;
  if (find(candidate.ppid) || holds(zombies_, candidate.ppid)) return true;
  if (options_.recorder_is_subreaper && candidate.ppid == options_.recorder_pid) return true;
  if (holds(sessions_, candidate.session)) return true;
  if (candidate.ended) return false;
  const auto marked = has_marker(candidate.pid);
  if (!marked && at - candidate.start_ticks * kernel_.ns_per_tick < kYoung) discovery_.look_again_at(candidate.pid);
  return marked.value_or(false);
}

std::optional<bool> TreeReader::has_marker(std::int64_t pid) {
  const auto equals = options_.environment_marker.find('=');
  if (equals == std::string::npos) return false;
  if (marker_reads_left_ <= 0) return std::nullopt;
  --marker_reads_left_;
  const auto text = proc_.read(fmt::format("{}/environ", pid).c_str());
  if (!text) return false;
  if (text->empty()) return std::nullopt;  // it execs, or has none
  const std::string_view marker = options_.environment_marker;
  return find_environment(*text, marker.substr(0, equals)) == marker.substr(equals + 1);
}

// Between fork and exec a child of ours shows our own command line, with what we were told in it.
ProcessFacts TreeReader::facts_of(std::int64_t pid, Environment environment) {
  ProcessFacts facts = read_process_facts(proc_, kernel_, users_, pid, environment);
  if (facts.process.cmdline == own_command_) facts.process.cmdline.clear();
  return facts;
}

bool TreeReader::admit(const Candidate& candidate, Nanos at, RecordingSink& sink) {
  const Nanos start = candidate.start_ticks * kernel_.ns_per_tick;
  const bool young = at - start < kYoung;
  // Between fork and exec a process still shows its parent's environment, and what a recording holds cannot be unsaid.
  const auto environment = kernel_.cpu_clocks && at - start < kJustForked ? Environment::kSkip : Environment::kRead;
  ProcessFacts facts = facts_of(candidate.pid, environment);
  if (facts.unreadable || facts.thread || facts.kernel_thread || facts.process.start != start) return false;
  facts.process.in_job = options_.most_of_machine == 0;
  const bool keep_open = kept_open_ + kFilesPerProbe <= options_.most_open_files;
  if (keep_open) kept_open_ += kFilesPerProbe;
  Member member{.probe = ProcessProbe(candidate.pid, candidate.start_ticks, keep_open),
                .gpu_files = GpuFiles(start),
                .key = fmt::format("{}/{}", candidate.pid, start),
                .inner_pids = std::move(facts.ns_pids),
                .look_again = young ? at + kSecondLook : 0,
                .looks = 1,
                .comm = facts.process.comm,
                .ppid = candidate.ppid,
                .watched = holds(roots_, candidate.pid)};
  member.born = !scanning_all_;
  const Member* parent = find(candidate.ppid);
  member.source = sink.add_source(
      Source{SourceKind::kProcess, member.key, parent ? parent->source : kNoSource, to_attrs(facts.process)});
  if (!scanning_all_)
    sink.add_event(to_event(events::ProcessStart{candidate.pid, facts.process.comm}, start, member.source));
  count_environment_denial(facts, member, sink);
  if (candidate.session == candidate.pid && !holds(sessions_, candidate.pid)) sessions_.push_back(candidate.pid);
  const auto place = std::lower_bound(members_.begin(), members_.end(), candidate.pid,
                                      [](const Member& m, std::int64_t pid) { return m.probe.pid() < pid; });
  members_.insert(place, std::move(member));
  return true;
}

void TreeReader::sample_all(Nanos at, RecordingSink& sink) {
  bool any_ended = false;
  const Pace pace = pace_of(members_.size());
  for (Member& member : members_) {
    const Pace& of_member = member.watched ? kWatched : pace;
    const auto outcome = member.probe.sample(proc_, kernel_, of_member, at);
    if (!member.probe.cells().empty()) sink.add_row(member.source, at, member.probe.cells());
    if (outcome == ProcessProbe::Outcome::kAlive) {
      if (member.probe.io_denied() && !std::exchange(member.io_denial_counted, true))
        sink.add_loss(make_loss(
            LossKind::kProcIoNoPermission, 1,
            fmt::format("the I/O counters of process {} are not readable: it is another user's", member.probe.pid())));
      if (member.probe.slept_anew()) read_wait(member, at, sink);
      look_for_gpu_files(member, of_member.files, at, sink);
      look_again(member, at, sink);
      continue;
    }
    end(member, at, sink);
    any_ended = true;
  }
  if (any_ended) std::erase_if(members_, [](const Member& member) { return member.key.empty(); });
}

void TreeReader::count_environment_denial(const ProcessFacts& facts, Member& member, RecordingSink& sink) {
  if (!facts.environment_denied || std::exchange(member.environment_denial_counted, true)) return;
  sink.add_loss(
      make_loss(LossKind::kProcEnvironNoPermission, 1,
                fmt::format("the environment of process {} is not readable: it is another user's", facts.process.pid)));
}

// Programs change with exec, and their names with it; the facts of a process that was seen just after its fork may
// still be its parent's.
void TreeReader::look_again(Member& member, Nanos at, RecordingSink& sink) {
  const bool due = member.look_again != 0 && at >= member.look_again;
  const bool renamed = member.probe.comm() != member.comm && member.looks < kMostLooks;
  if ((!due && !renamed) || fact_looks_left_ <= 0) return;
  --fact_looks_left_;
  ProcessFacts facts = facts_of(member.probe.pid(), Environment::kRead);
  if (facts.unreadable) return;
  count_environment_denial(facts, member, sink);
  ++member.looks;
  member.look_again = facts.environment_empty && member.looks < kMostLooks ? at + kSecondLook : 0;
  member.comm = member.probe.comm();
  facts.process.in_job = options_.most_of_machine == 0;
  sink.add_source(Source{SourceKind::kProcess, member.key, kNoSource, to_attrs(facts.process)});
}

// Until when it has none is told once it has one, or in end(): of a process that goes on it is not known yet.
void TreeReader::look_for_gpu_files(Member& member, Nanos least, Nanos at, RecordingSink& sink) {
  if (file_looks_left_ <= 0 || !member.gpu_files.due(member.probe.cpu_clock(), at)) return;
  --file_looks_left_;
  if (!member.gpu_files.look(proc_, member.probe.pid(), options_.virtual_gpus, least, at)) return;
  member.on_gpu = true;
  Attrs attrs{{"gpu_open_ns", fmt::format("{}", at)}};
  if (const auto until = member.gpu_files.none_until()) attrs["no_gpu_until_ns"] = fmt::format("{}", *until);
  sink.add_source(Source{SourceKind::kProcess, member.key, kNoSource, std::move(attrs)});
}

// What it sleeps for by name. A sleep that is not looked into, as others in this tick were, is not the one before.
void TreeReader::read_wait(Member& member, Nanos at, RecordingSink& sink) {
  WaitReader::Wait wait;
  if (wait_reads_left_-- > 0) {
    std::vector<std::int64_t> job;
    for (const Member& one : members_) job.push_back(one.probe.pid());
    wait = wait_reader_.read(proc_, {member.probe.pid(), member.born, member.probe.blocked()}, job, at);
  }
  if (wait.targets.empty() && member.waits == kNoSource) return;
  if (member.waits == kNoSource)
    member.waits = sink.add_source(
        Source{SourceKind::kProcessWaits,
               member.key,
               member.source,
               {{"pid", std::to_string(member.probe.pid())}, {"tid", std::to_string(member.probe.pid())}}});
  const ListId none = sink.intern_list({});
  std::vector<TextId> texts;
  for (const WaitTarget& target : wait.targets) texts.push_back(sink.intern(to_text(target)));
  const bool kept = std::find(texts.begin(), texts.end(), kNoText) == texts.end();
  const ListId told = kept ? sink.intern_list(texts) : kNoList, list = told == kNoList ? none : told;
  if (list != std::exchange(member.waits_for, list)) sink.add_list_row(member.waits, ListRow{at, list});
  if (!wait.carried) return;
  member.carried.sent += wait.carried->sent;
  member.carried.received += wait.carried->received;
  sink.add_row(member.waits, at,
               std::array{Cell{Metric::kConnectionSent, member.carried.sent, std::nullopt},
                          Cell{Metric::kConnectionReceived, member.carried.received, std::nullopt}});
}

bool TreeReader::works_for_a_gpu(const Member& member) const {
  constexpr int kDeepest = 64;
  const Member* one = &member;
  for (int depth = 0; one && depth < kDeepest; ++depth) {
    if (one->on_gpu) return true;
    one = find(one->ppid);
  }
  return false;
}

// One process at a time, the one whose last look is longest ago. Threads may be bound by themselves, as OpenMP's are
// (OMP_PROC_BIND): where the main one may run is not where the process may.
void TreeReader::read_cpus(Nanos at, RecordingSink& sink) {
  constexpr Nanos kYoungest = 300 * kMillisecond, kApart = 400 * kMillisecond, kCostFactor = 10'000;
  constexpr Nanos kAgain = 10 * kSecond;
  if (at < next_cpus_ || !options_.root.empty()) return;
  Member* oldest = nullptr;
  for (Member& member : members_) {
    const Nanos age = at - member.gpu_files.start();
    const Nanos again = std::min(kAgain, std::max(kSecond, age / 4));
    const bool due = member.cpus_at == 0 ? age >= kYoungest : at - member.cpus_at >= again;
    if (due && (!oldest || member.cpus_at < oldest->cpus_at) && works_for_a_gpu(member)) oldest = &member;
  }
  if (!oldest) return;
  const Nanos before = thread_cpu_now();
  const auto cpus = allowed_cpus(proc_, oldest->probe.pid());
  next_cpus_ = at + std::max(kApart, (thread_cpu_now() - before) * kCostFactor);
  oldest->cpus_at = at;
  const std::string list = cpus ? to_list(*cpus) : "";
  if (list == oldest->cpus_allowed) return;
  oldest->cpus_allowed = list;
  sink.add_source(Source{SourceKind::kProcess, oldest->key, kNoSource, {{"cpus_allowed", list}}});
}

void TreeReader::end(Member& member, Nanos at, RecordingSink& sink) {
  if (!member.exit_code && member.probe.wait_status()) member.exit_code = exit_code_of(*member.probe.wait_status());
  at = member.ended_at.value_or(at);
  Attrs attrs{{"end_ns", fmt::format("{}", at)}};
  if (member.exit_code) attrs["exit_code"] = fmt::format("{}", *member.exit_code);
  if (const auto until = member.gpu_files.none_until()) attrs["no_gpu_until_ns"] = fmt::format("{}", *until);
  sink.add_source(Source{SourceKind::kProcess, member.key, kNoSource, std::move(attrs)});
  sink.add_event(to_event(events::ProcessEnd{member.probe.pid(), member.exit_code}, at, member.source));
  if (member.probe.keeps_open()) kept_open_ -= kFilesPerProbe;
  if (ended_.size() >= kEndedRemembered) ended_.erase(ended_.begin());
  ended_.push_back({member.probe.pid(), std::exchange(member.key, "")});
}

void TreeReader::announce_exit_code(const std::string& key, int code, RecordingSink& sink) {
  sink.add_source(Source{SourceKind::kProcess, key, kNoSource, {{"exit_code", fmt::format("{}", code)}}});
}

bool TreeReader::descends_from_member(std::int64_t ppid) {
  constexpr int kDeepest = 64;
  for (int depth = 0; depth < kDeepest && ppid > 1; ++depth) {
    if (find(ppid)) return true;
    const auto text = proc_.read(fmt::format("{}/stat", ppid).c_str());
    const auto stat = text ? parse_pid_stat(*text) : std::nullopt;
    if (!stat) return false;
    ppid = stat->ppid;
  }
  return false;
}

std::optional<Process> TreeReader::describe(std::int64_t pid) {
  if (options_.driver_names_host_pids && nested_pid_namespace_) return std::nullopt;
  ProcessFacts facts = facts_of(pid, Environment::kRead);
  if (facts.unreadable || facts.kernel_thread) {
    // Not a number of ours: perhaps what a process of the job is called inside its container.
    const auto inner = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
      return member.inner_pids.size() > 1 && holds(member.inner_pids, pid);
    });
    if (inner == members_.end()) return std::nullopt;
    facts = facts_of(inner->probe.pid(), Environment::kRead);
    if (facts.unreadable) return std::nullopt;
  }
  Member* member = find(facts.process.pid);
  if (member) member->watched = member->on_gpu = true;  // what it does is wanted at every tick
  facts.process.in_job = options_.most_of_machine == 0 && (member || descends_from_member(facts.process.ppid));
  return facts.process;
}

}  // namespace headroom::host
