// SPDX-License-Identifier: Apache-2.0
#include "python/stack_reader.h"

#include <gmock/gmock.h>

#include <deque>
#include <set>
#include <thread>

#include "base/fd.h"
#include "base/time.h"
#include "model/entities.h"
#include "python/testing.h"

namespace headroom::python {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Reads at 50 Hz until `enough` says so, at most for some seconds.
template <class Enough>
bool read_until(StackReader& reader, MemorySink& sink, Enough enough) {
  for (int i = 0; i < 500; ++i) {
    reader.read(boottime_now(), sink);
    if (enough(sink.recording())) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

std::vector<std::string> texts_of(const Recording& recording, const ListRow& row) {
  std::vector<std::string> texts;
  for (const TextId text : recording.lists.at(row.list)) texts.push_back(recording.texts.at(text));
  return texts;
}

const Source* thread_of(const Recording& recording, std::int64_t tid) {
  for (const SourceId id : recording.all(SourceKind::kPythonThread))
    if (recording.sources[static_cast<std::size_t>(id)].attrs.at("tid") == std::to_string(tid))
      return &recording.sources[static_cast<std::size_t>(id)];
  return nullptr;
}

std::size_t rows_of(const Recording& recording, std::int64_t tid) {
  const Source* source = thread_of(recording, tid);
  return source == nullptr ? 0
                           : recording.tracks[static_cast<std::size_t>(source - recording.sources.data())].lists.size();
}

TEST(StackReader, ThreadsOfTheJobAreSourcesOfTheirProcesses) {
  Program program("/usr/bin/python3", R"(
import os, time
def worker(): time.sleep(1000)
def train():
    child = os.fork()
    if child == 0: worker()
    print(child, flush=True)
    x = 0
    while True: x += 1
train()
)");
  const auto child = std::stoll(program.line());
  StackReader reader({.pids = {program.pid()}});
  MemorySink sink;
  ASSERT_TRUE(read_until(reader, sink,
                         [&](const Recording& r) { return rows_of(r, child) > 5 && rows_of(r, program.pid()) > 5; }));
  EXPECT_EQ(reader.processes(), 2U);
  const Recording& recording = sink.recording();
  const Source& source = *thread_of(recording, program.pid());
  const Source& process = recording.sources.at(static_cast<std::size_t>(source.parent));
  EXPECT_EQ(process.kind, SourceKind::kProcess);
  EXPECT_EQ(process.key, fmt::format("{}/{}", program.pid(), process_of(process).start));
  EXPECT_EQ(process_of(process).pid, program.pid());
  EXPECT_EQ(source.key, fmt::format("{}/{}", process.key, program.pid()));
  EXPECT_EQ(source.attrs.at("pid"), std::to_string(program.pid()));
  EXPECT_EQ(source.attrs.at("main"), "true");
  EXPECT_THAT(source.attrs.at("python"), testing::StartsWith("3."));
  const auto& rows = recording.tracks[static_cast<std::size_t>(&source - recording.sources.data())].lists;
  EXPECT_EQ(source.attrs.at("lines"), "own");
  EXPECT_THAT(texts_of(recording, rows.back()), testing::ElementsAre("<module> (<string>:10)", "train (<string>:9)"));
  EXPECT_EQ(rows.back().value, 1);  // it computes, and holds the GIL
  const Source& worker = *thread_of(recording, child);
  const auto& worker_rows = recording.tracks[static_cast<std::size_t>(&worker - recording.sources.data())].lists;
  EXPECT_THAT(texts_of(recording, worker_rows.back()), Contains("worker (<string>:3)"));
  EXPECT_EQ(worker_rows.back().value, 0);
  for (const Loss& loss : recording.losses) EXPECT_EQ(loss.what, "stack_rejected") << loss.detail;
}

// It cannot have turned into Python without running. (What has a name of its own by then is looked into when that
// changes.)
TEST(StackReader, AProcessThatDoesNotRunIsSearchedOnce) {
  Program one("/bin/sh", "exec sleep 1000"), other("/bin/sh", "exec sleep 1000");
  for (const Program* program : {&one, &other})
    while (read_file(fmt::format("/proc/{}/stat", program->pid())).value().find("(sleep) S") == std::string::npos)
      std::this_thread::yield();
  StackReader reader({.pids = {one.pid(), other.pid()}});
  MemorySink sink;
  const Nanos begin = boottime_now();
  for (int i = 0; i < 60; ++i) reader.read(begin + i * 250 * kMillisecond, sink);
  EXPECT_EQ(reader.searches(), 2U);
  EXPECT_GT(reader.idle_until(), begin + 59 * 250 * kMillisecond);
}

TEST(StackReader, LooksWaitUntilTheirCostIsPaid) {
  Program program("/usr/bin/python3", "print(1, flush=True); import time; time.sleep(1000)");
  ASSERT_EQ(program.line(), "1");
  StackReader reader({.pids = {program.pid()}, .most_of_core = 1e-9});
  MemorySink sink;
  const Nanos begin = boottime_now();
  reader.read(begin, sink);
  const std::size_t rows = rows_of(sink.recording(), program.pid());
  EXPECT_GT(rows, 0U);
  reader.read(begin + 3600 * kSecond, sink);
  EXPECT_EQ(rows_of(sink.recording(), program.pid()), rows)
      << "a microsecond of CPU has to last for a quarter of an hour";
}

TEST(StackReader, WhatStartsLaterAndExecsIsFound) {
  Program program("/bin/sh",
                  "read line; /usr/bin/python3 -c 'import time; print(1, flush=True); time.sleep(1000)'; true");
  StackReader reader({.pids = {program.pid()}});
  MemorySink sink;
  for (int i = 0; i < 10; ++i) {
    reader.read(boottime_now(), sink);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(reader.processes(), 0U);
  EXPECT_THAT(sink.recording().sources, IsEmpty());
  program.say("go");
  ASSERT_EQ(program.line(), "1");
  ASSERT_TRUE(read_until(reader, sink, [](const Recording& r) { return !r.all(SourceKind::kPythonThread).empty(); }));
  EXPECT_EQ(reader.processes(), 1U);
}

TEST(StackReader, AProcessThatExecsIntoPythonIsFoundAndOneThatLeavesItIsDropped) {
  Program program("/bin/sh",
                  "read line; exec /usr/bin/python3 -c 'import os, sys, time; print(1, flush=True); "
                  "sys.stdin.readline(); os.execv(\"/bin/sleep\", [\"sleep\", \"1000\"])'");
  StackReader reader({.pids = {program.pid()}});
  MemorySink sink;
  reader.read(boottime_now(), sink);
  program.say("go");
  ASSERT_EQ(program.line(), "1");
  ASSERT_TRUE(read_until(reader, sink, [&](const Recording& r) { return rows_of(r, program.pid()) > 0; }));
  program.say("go");
  ASSERT_TRUE(read_until(reader, sink, [&](const Recording&) { return reader.processes() == 0; }));
}

// Its thread keeps its number, and what it was at before is gone.
TEST(StackReader, APythonThatExecsIntoPythonIsSeenAtWhatItIsAtThen) {
  Program program("/usr/bin/python3", R"py(
import os, sys
def before():
    print(1, flush=True)
    sys.stdin.readline()
    after = "exec(chr(10).join(['def after():', ' while True: pass', 'after()']))"
    os.execv("/bin/sh", ["sh", "-c", f'sleep 0.4; exec {sys.executable} -c "{after}"'])
before()
)py");
  ASSERT_EQ(program.line(), "1");
  StackReader reader({.pids = {program.pid()}});
  MemorySink sink;
  const auto seen_at = [&](const Recording& r, const char* function) {
    const Source* source = thread_of(r, program.pid());
    if (source == nullptr) return false;
    const auto& rows = r.tracks[static_cast<std::size_t>(source - r.sources.data())].lists;
    return !rows.empty() && testing::Value(texts_of(r, rows.back()), Contains(HasSubstr(function)));
  };
  ASSERT_TRUE(read_until(reader, sink, [&](const Recording& r) { return seen_at(r, "before"); }));
  program.say("go");
  EXPECT_TRUE(read_until(reader, sink, [&](const Recording& r) { return seen_at(r, "after"); }));
}

TEST(StackReader, ProcessesThatEndAreForgottenAndARootMayComeLater) {
  StackReader reader({});
  MemorySink sink;
  reader.read(boottime_now(), sink);
  Program program("/usr/bin/python3", "import time\nprint(1, flush=True)\ntime.sleep(1000)");
  ASSERT_EQ(program.line(), "1");
  reader.watch(program.pid());
  ASSERT_TRUE(read_until(reader, sink, [&](const Recording& r) { return rows_of(r, program.pid()) > 0; }));
  const auto pid = program.pid();
  program.stop();
  ASSERT_TRUE(read_until(reader, sink, [&](const Recording&) { return reader.processes() == 0; }));
  const auto rows = rows_of(sink.recording(), pid);
  for (int i = 0; i < 5; ++i) reader.read(boottime_now(), sink);
  EXPECT_EQ(rows_of(sink.recording(), pid), rows);
}

// A thread's number is one that a process might have.
TEST(StackReader, AThreadThatStartsLaterIsNoProcess) {
  Program program("/usr/bin/python3", R"(
import sys, threading, time
print(1, flush=True)
sys.stdin.readline()
for i in range(3): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print(2, flush=True)
time.sleep(1000)
)");
  ASSERT_EQ(program.line(), "1");
  StackReader reader({.pids = {program.pid()}});
  MemorySink sink;
  ASSERT_TRUE(read_until(reader, sink, [&](const Recording& r) { return rows_of(r, program.pid()) > 0; }));
  program.say("go");
  ASSERT_EQ(program.line(), "2");
  ASSERT_TRUE(
      read_until(reader, sink, [](const Recording& r) { return r.all(SourceKind::kPythonThread).size() == 4; }));
  for (int i = 0; i < 20; ++i) reader.read(boottime_now() + i * kSecond, sink);  // processes are looked for again
  EXPECT_EQ(reader.processes(), 1U);
  EXPECT_EQ(sink.recording().all(SourceKind::kProcess).size(), 1U);
}

TEST(StackReader, MoreProcessesThanAreReadAreCounted) {
  Program program("/usr/bin/python3", R"(
import os, time
for i in range(4):
    if os.fork() == 0: time.sleep(1000)
print(1, flush=True)
time.sleep(1000)
)");
  ASSERT_EQ(program.line(), "1");
  StackReader reader({.pids = {program.pid()}, .most_processes = 3});
  MemorySink sink;
  ASSERT_TRUE(read_until(reader, sink, [](const Recording& r) { return !r.losses.empty() && r.losses[0].count == 2; }));
  EXPECT_EQ(reader.processes(), 3U);
  EXPECT_EQ(sink.recording().losses[0].what, "stack_left_out");
  EXPECT_GT(rows_of(sink.recording(), program.pid()), 0U);  // the root is among those that are read
}

TEST(StackReader, OfTasksOneInSoManyIsLookedAt) {
  const std::string sleeps = "print(1, flush=True); import time; time.sleep(1000)";
  std::deque<Program> tasks;
  for (int i = 0; i < 6; ++i) ASSERT_EQ(tasks.emplace_back("/usr/bin/python3", sleeps).line(), "1");
  for (const int one_in : {1, 3}) {
    StackReader reader({.recorder_pid = ::getpid(), .recorder_is_subreaper = true, .one_in = one_in});
    MemorySink sink;
    const std::size_t wanted = tasks.size() / static_cast<std::size_t>(one_in);
    ASSERT_TRUE(read_until(reader, sink, [&](const Recording&) { return reader.processes() == wanted; }));
    reader.read(boottime_now() + 10 * kSecond, sink);
    EXPECT_EQ(reader.processes(), wanted);
  }
}

TEST(StackReader, APythonThatIsTooOldIsDeclinedInWords) {
  for (const Interpreter& old : interpreters()) {
    if (old.version != "3.7") continue;
    Program program(old.program, "import time\nprint(1, flush=True)\ntime.sleep(1000)");
    ASSERT_EQ(program.line(), "1");
    StackReader reader({.pids = {program.pid()}});
    MemorySink sink;
    ASSERT_TRUE(read_until(reader, sink, [](const Recording& r) { return !r.sources.empty(); }));
    EXPECT_THAT(sink.recording().sources[0].attrs.at("python_declined"), HasSubstr("Python 3.7 is older than 3.8"));
    return;
  }
  GTEST_SKIP() << "no Python 3.7 here";
}

}  // namespace
}  // namespace headroom::python
