// SPDX-License-Identifier: Apache-2.0
#include "python/stack_reader.h"

#include <fmt/format.h>
#include <time.h>
#include <algorithm>
#include <utility>

#include "base/time.h"
#include "host/proc_parse.h"
#include "host/process_probe.h"
#include "model/losses.h"
#include "model/places.h"

namespace headroom::python {

TextId CodeNames::number_of(std::string_view name, RecordingSink& sink) {
  constexpr TextId kMany = 4096;  // what other code is called has its number by then, while there is room
  const TextId number = sink.intern(name);
  if (number == kNoText) return other_;
  if (other_ == kNoText && (number >= kMany || name == kOtherCode)) other_ = sink.intern(kOtherCode);
  return number;
}

namespace {

constexpr Nanos kFind = kSecond, kFindYoung = 250 * kMillisecond;
constexpr Nanos kYoung = 8 * kSecond;        // until then what starts may turn into Python
constexpr Nanos kSayDeclined = kSecond;      // of age: before, it may still change
constexpr Nanos kCheckOthers = 5 * kSecond;  // between looks whether a process without Python is there, and its name
constexpr int kAttaches = 4;                 // in one call: the map of a large process takes a millisecond
constexpr std::size_t kFailures = 3;         // samples in a row that got nothing: another program by now?
constexpr std::size_t kHopeless = 40;        // likewise, of one that never had a stack
constexpr Nanos kSaved = 10 * kSecond;       // whose share of a core what starts at once may take
constexpr std::size_t kLasting = 5;          // samples in a row without a thread: it is left out for good

}  // namespace

StackReader::StackReader(StackOptions options)
    : options_(std::move(options)),
      proc_("/proc"),
      kernel_(host::read_kernel_facts(proc_, true)),
      watching_(options_.recorder_is_subreaper),
      requests_(options_.pids) {}

void StackReader::watch(std::int64_t pid) {
  const std::lock_guard lock(requests_mutex_);
  requests_.push_back(pid);
}

std::size_t StackReader::processes() const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const Member& member) { return member.python.has_value(); }));
}

void StackReader::read(Nanos at, RecordingSink& sink) {
  if (options_.most_of_core > 0 && at < look_from_) return;
  if (at < idle_until_ && !is_asked()) return;
  if (options_.spread > 0) {
    const Nanos wait = std::uniform_int_distribution<Nanos>(0, options_.spread - 1)(random_);
    const timespec time{.tv_sec = static_cast<time_t>(wait / kSecond), .tv_nsec = static_cast<long>(wait % kSecond)};
    ::nanosleep(&time, nullptr);
    at = std::max(at, boottime_now() / kMicrosecond * kMicrosecond);
  }
  const Nanos begin = thread_cpu_now();
  attaches_left_ = kAttaches;
  take_requests();
  if (at >= find_at_) find_processes(at);
  for (Member& member : members_) {
    look_after(member, at, sink);
    if (member.python) sample(member, at, sink);
  }
  std::erase_if(members_, [](const Member& member) { return member.gone; });
  idle_until_ = next_due();
  if (options_.most_of_core > 0)
    look_from_ = std::max(look_from_, at - kSaved) +
                 static_cast<Nanos>(static_cast<double>(thread_cpu_now() - begin) / options_.most_of_core);
}

bool StackReader::is_asked() const {
  const std::lock_guard lock(requests_mutex_);
  return !requests_.empty();
}

Nanos StackReader::next_due() const {
  Nanos next = find_at_;
  for (const Member& member : members_) {
    if (member.python) return 0;
    Nanos of_member = member.check_at;
    if (member.look_at > 0) of_member = std::min(of_member, member.look_at);
    next = std::min(next, std::max(of_member, member.start + options_.from_age));
  }
  return next;
}

void StackReader::take_requests() {
  std::vector<std::int64_t> requests;
  {
    const std::lock_guard lock(requests_mutex_);
    requests.swap(requests_);
  }
  for (const std::int64_t pid : requests) {
    watching_ = true;
    find_at_ = 0;
    roots_.push_back(pid);
    const auto text = proc_.read(fmt::format("{}/stat", pid).c_str());
    const auto stat = text ? host::parse_pid_stat(*text) : std::nullopt;
    // What we started ourselves is young, and all it started is younger; anything else may have a tree already.
    if (stat && options_.recorder_pid != 0 && stat->ppid == options_.recorder_pid)
      discovery_.rewind_to(pid);
    else
      discovery_.rewind_all();
  }
}

void StackReader::find_processes(Nanos at) {
  const bool young = std::any_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return at - member.start < 2 * kSecond; });
  find_at_ = at + (young || members_.empty() ? kFindYoung : kFind);
  if (!watching_) return;
  const auto candidates = discovery_.fresh(proc_);
  passed_over_.clear();
  for (const host::Candidate& candidate : candidates)
    if (is_own_child(candidate) && !is_thread(candidate.pid) && !draw()) passed_over_.push_back(candidate.pid);
  // Parents may come after their children in the list: again until nobody else gets in.
  for (bool more = true; more;) {
    more = false;
    for (const host::Candidate& candidate : candidates) {
      if (candidate.ended || !belongs(candidate)) continue;
      admit(candidate);
      more = true;
    }
  }
  roots_.clear();
}

bool StackReader::belongs(const host::Candidate& candidate) const {
  bool parent = false, session = false;
  for (const Member& member : members_) {
    if (member.pid == candidate.pid) return false;
    parent = parent || member.pid == candidate.ppid;
    session = session || (member.session == member.pid && member.session == candidate.session);
  }
  if (std::find(roots_.begin(), roots_.end(), candidate.pid) != roots_.end() || parent || session) return true;
  return is_own_child(candidate) &&
         std::find(passed_over_.begin(), passed_over_.end(), candidate.pid) == passed_over_.end();
}

bool StackReader::is_own_child(const host::Candidate& candidate) const {
  return options_.recorder_is_subreaper && candidate.ppid == options_.recorder_pid;
}

// Of every `one_in` tasks, in the order of their starts, one; not each time the first, for tasks may differ by turns.
bool StackReader::draw() {
  if (tasks_drawn_from_++ % options_.one_in == 0)
    until_drawn_ = std::uniform_int_distribution<int>(0, options_.one_in - 1)(random_);
  return until_drawn_-- == 0;
}

// Single threads have numbers of the same kind as processes, and are not listed.
bool StackReader::is_thread(std::int64_t pid) {
  const auto text = proc_.read(fmt::format("{}/status", pid).c_str());
  const auto group = text ? host::parse_pid_status(*text).tgid : std::nullopt;
  return group && *group != pid;
}

void StackReader::admit(const host::Candidate& candidate) {
  if (is_thread(candidate.pid)) {
    Member thread;
    thread.pid = candidate.pid;
    thread.gone = true;
    members_.push_back(std::move(thread));
    return;
  }
  Member member;
  member.pid = candidate.pid;
  member.session = candidate.session;
  member.start_ticks = candidate.start_ticks;
  member.start = candidate.start_ticks * kernel_.ns_per_tick;
  member.key = fmt::format("{}/{}", member.pid, member.start);
  member.look_at = 1;  // at once
  members_.push_back(std::move(member));
}

bool StackReader::still_there(Member& member, Nanos at) {
  member.check_at = at + (member.python || at - member.start < kYoung ? kSecond : kCheckOthers);
  const auto clock = host::process_cpu_clock(member.pid);
  if (clock && clock == member.checked) return true;  // it has not run since: it is what it was
  member.checked = clock;                             // before its file is read
  const auto text = proc_.read(fmt::format("{}/stat", member.pid).c_str());
  const auto stat = text ? host::parse_pid_stat(*text) : std::nullopt;
  if (!stat || stat->state == 'Z' || stat->state == 'X' || stat->start_ticks != member.start_ticks) return false;
  member.session = stat->session;
  if (member.comm == stat->comm) return true;
  const bool first = member.comm.empty();
  member.comm = stat->comm;
  if (!first && !member.python) member.look_at = at;  // another program by now
  return true;
}

void StackReader::look_after(Member& member, Nanos at, RecordingSink& sink) {
  if (member.gone || at - member.start < options_.from_age) return;
  if (at >= member.check_at && !still_there(member, at)) {
    member.gone = true;
    member.python.reset();
    return;
  }
  if (member.python || member.look_at == 0 || at < member.look_at || attaches_left_ <= 0) return;
  if (processes() >= options_.most_processes) {
    member.look_at = at + kSecond;
    if (std::exchange(member.left_out_counted, true)) return;
    // Whether it is one at all would have to be looked up; what starts beside so many is of their kind.
    sink.add_loss(make_loss(
        LossKind::kStackLeftOut, 1,
        fmt::format("process {}: the stacks of {} processes are read already", member.pid, options_.most_processes)));
    return;
  }
  attach(member, at, sink);
}

void StackReader::attach(Member& member, Nanos at, RecordingSink& sink) {
  const Nanos age = at - member.start;
  const auto look_again = [&](bool again) {
    member.look_at = again ? at + std::clamp(age / 4, kFindYoung, 2 * kSecond) : 0;
  };
  const auto clock = host::process_cpu_clock(member.pid);
  if (clock && clock == member.without) return look_again(age < kYoung);  // it has not run since
  --attaches_left_;
  ++searches_;
  auto process = PythonProcess::attach(member.pid, LinesOf::kOwnCode, &files_);
  if (process) {
    member.python = std::move(*process);
    member.failures = 0;
    member.clock.reset();
    if (!member.declined.empty()) decline(member, "", sink);
    return;
  }
  const Errc code = process.error().code;
  if (code == Errc::kIo) {
    member.check_at = at;
    return;
  }
  const bool final = code == Errc::kNoPermission || code == Errc::kUnsupported || code == Errc::kInvalidInput;
  if (final && age >= kSayDeclined) decline(member, process.error().what, sink);
  member.without = code == Errc::kNotFound ? clock : std::nullopt;
  look_again(age < kYoung || code == Errc::kBusy);
}

void StackReader::detach(Member& member, Nanos look_at) {
  member.python.reset();
  member.texts.clear();
  for (Thread& thread : member.threads) thread.has_stack = false, thread.list = kNoList;
  member.look_at = look_at;
}

SourceId StackReader::announce(Member& member, RecordingSink& sink) {
  if (member.source == kNoSource)
    member.source =
        sink.add_source({SourceKind::kProcess,
                         member.key,
                         kNoSource,
                         {{"pid", fmt::format("{}", member.pid)}, {"start_ns", fmt::format("{}", member.start)}}});
  return member.source;
}

void StackReader::decline(Member& member, const std::string& why, RecordingSink& sink) {
  if (member.declined == why || announce(member, sink) == kNoSource) return;
  member.declined = why;
  sink.add_source({SourceKind::kProcess, member.key, kNoSource, {{"python_declined", why}}});
}

void StackReader::sample(Member& member, Nanos at, RecordingSink& sink) {
  const auto clock = host::process_cpu_clock(member.pid);
  if (clock && clock == member.clock) {
    add_rows(member, at, sink);
    return;
  }
  const auto outcome = member.python->sample(sample_);
  if (outcome == PythonProcess::Outcome::kGone) {
    detach(member, 0);
    member.check_at = at;
    return;
  }
  count_losses(member, at, sink);
  for (Thread& thread : member.threads) thread.has_stack = false;
  const bool nothing = sample_.stacks.empty() && (outcome == PythonProcess::Outcome::kNothing || sample_.rejected > 0);
  member.failures = nothing ? member.failures + 1 : 0;
  member.clock = sample_.rejected == 0 && !nothing ? clock : std::nullopt;
  if (nothing) {
    if (!member.ever_read && member.failures >= kHopeless) {
      decline(member, "its stacks make no sense: it may be a build of Python that is unlike others", sink);
      detach(member, 0);
    } else if (member.failures % kFailures == 0 && attaches_left_ > 0) {
      const auto failures = member.failures;
      detach(member, at);
      attach(member, at, sink);
      member.failures = failures;
    }
    return;
  }
  member.ever_read = member.ever_read || !sample_.stacks.empty();
  for (const ThreadStack& stack : sample_.stacks) {
    Thread& thread = thread_of(member, stack, sink);
    if (!stack.same || thread.list == kNoList) thread.list = list_of(member, stack, sink);
    thread.value = static_cast<std::int32_t>(stack.gil);
    thread.has_stack = true;
  }
  add_rows(member, at, sink);
}

void StackReader::count_losses(Member& member, Nanos at, RecordingSink& sink) {
  if (sample_.rejected > 0)
    sink.add_loss(make_loss(LossKind::kStackRejected, static_cast<std::int64_t>(sample_.rejected),
                            fmt::format("first of process {}", member.pid), LossPlace{at, at, announce(member, sink)}));
  member.incomplete = sample_.left_out > 0 ? member.incomplete + 1 : 0;
  if (member.incomplete >= kLasting && !std::exchange(member.threads_counted, true))
    sink.add_loss(make_loss(LossKind::kStackLeftOut, static_cast<std::int64_t>(sample_.left_out),
                            fmt::format("process {}: threads", member.pid)));
  if (sample_.more_interpreters && !std::exchange(member.interpreters_counted, true))
    sink.add_loss(
        make_loss(LossKind::kStackLeftOut, 1, fmt::format("process {}: sub-interpreters are not read", member.pid)));
  const auto cut =
      std::count_if(sample_.stacks.begin(), sample_.stacks.end(), [](const ThreadStack& stack) { return stack.cut; });
  if (cut > 0) sink.add_loss(make_loss(LossKind::kStackCut, cut, fmt::format("first of process {}", member.pid)));
}

void StackReader::add_rows(Member& member, Nanos at, RecordingSink& sink) {
  for (const Thread& thread : member.threads) {
    if (!thread.has_stack || thread.source == kNoSource) continue;
    if (thread.list != kNoList)
      sink.add_list_row(thread.source, {at, thread.list, thread.value});
    else
      sink.add_loss(make_loss(LossKind::kRowNotRecorded, 1, "there are too many different stacks",
                              LossPlace{at, at, thread.source}));
  }
}

StackReader::Thread& StackReader::thread_of(Member& member, const ThreadStack& stack, RecordingSink& sink) {
  const auto known = std::find_if(member.threads.begin(), member.threads.end(),
                                  [&](const Thread& thread) { return thread.tid == stack.tid; });
  if (known != member.threads.end()) return *known;
  const SourceId source = sink.add_source({SourceKind::kPythonThread,
                                           fmt::format("{}/{}", member.key, stack.tid),
                                           announce(member, sink),
                                           {{"pid", fmt::format("{}", member.pid)},
                                            {"tid", fmt::format("{}", stack.tid)},
                                            {"main", stack.main ? "true" : "false"},
                                            {"lines", "own"},
                                            {"python", member.python->version()}}});
  return member.threads.emplace_back(Thread{.tid = stack.tid, .source = source});
}

TextId StackReader::text_of(Member& member, CodeId code, RecordingSink& sink) {
  if (code >= member.texts.size()) member.texts.resize(code + 1, kNoText);
  TextId& text = member.texts[code];
  if (text != kNoText) return text;
  text = names_.number_of(member.python->text(code), sink);
  if (names_.is_other(text) && !std::exchange(member.code_counted, true))
    sink.add_loss(make_loss(LossKind::kCodeLeftOut, 1, fmt::format("first: process {}", member.pid)));
  return text;
}

ListId StackReader::list_of(Member& member, const ThreadStack& stack, RecordingSink& sink) {
  ids_.clear();
  if (stack.cut) ids_.push_back(sink.intern(kCutFrames));
  for (const CodeId code : *stack.frames) ids_.push_back(text_of(member, code, sink));
  return sink.intern_list(ids_);
}

}  // namespace headroom::python
