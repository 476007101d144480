// SPDX-License-Identifier: Apache-2.0
#include "python/process.h"

#include <gmock/gmock.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/time.h"
#include "python/testing.h"

namespace headroom::python {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReadPython : public testing::TestWithParam<Interpreter> {
 protected:
  [[nodiscard]] const std::string& program() const { return GetParam().program; }
  [[nodiscard]] std::string name(const std::string& qualified) const { return name_in(GetParam(), qualified); }
};
std::string name_of(const testing::TestParamInfo<Interpreter>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.version;
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Versions, ReadPython, testing::ValuesIn(readable_interpreters()), name_of);

// Samples until `wanted` says yes, at most some hundred times.
template <class Wanted>
bool sample_until(PythonProcess& process, StackSample& sample, Wanted wanted) {
  for (int i = 0; i < 500; ++i) {
    if (process.sample(sample) == PythonProcess::Outcome::kRead && wanted(sample)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  return false;
}

TEST_P(ReadPython, NestedFunctionsAndClassesAreNamed) {
  Program program(GetParam().program, R"(
import time
class Net:
    class Inner:
        def forward(self):
            print('ready', flush=True)
            time.sleep(1000)
def outer():
    def inner():
        Net.Inner().forward()
    inner()
outer()
)");
  ASSERT_EQ(program.line(), "ready");
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  EXPECT_EQ(process->version(), GetParam().version);
  StackSample sample;
  ASSERT_EQ(process->sample(sample), PythonProcess::Outcome::kRead);
  ASSERT_EQ(sample.stacks.size(), 1U);
  const ThreadStack& stack = sample.stacks[0];
  EXPECT_EQ(stack.tid, program.pid());
  EXPECT_TRUE(stack.main);
  EXPECT_THAT(names(*process, stack),
              ElementsAre("<module>", "outer", name("outer.<locals>.inner"), name("Net.Inner.forward")));
}

TEST_P(ReadPython, TheLineThatRunsIsToldInEveryFrameOfTheUsersOwn) {
  Program program(GetParam().program, R"(
import sys
def wait():
    sys.stdin.readline(
    )
def work():
    for name in ('one', 'two'):
        print(name, flush=True)
        wait()
    print('three', flush=True)
    wait()
work()
)");
  ASSERT_EQ(program.line(), "one");
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  const auto at = [&](const std::string& line_of_work) {
    return sample_until(*process, sample, [&](const StackSample& s) {
      std::vector<std::string> texts;
      for (const CodeId id : *s.stacks[0].frames) texts.push_back(process->text(id));
      return texts == std::vector<std::string>{"<module> (<string>:12)", "work (<string>:" + line_of_work + ")",
                                               "wait (<string>:4)"};
    });
  };
  EXPECT_TRUE(at("9"));
  EXPECT_TRUE(sample_until(*process, sample, [](const StackSample& s) { return s.stacks[0].same; }));
  ASSERT_TRUE(program.say("on"));
  ASSERT_EQ(program.line(), "two");
  EXPECT_TRUE(at("9"));
  ASSERT_TRUE(program.say("on"));
  ASSERT_EQ(program.line(), "three");
  EXPECT_TRUE(at("11"));
  EXPECT_FALSE(sample.stacks[0].same);
  EXPECT_EQ(process->sample(sample), PythonProcess::Outcome::kRead);
  EXPECT_TRUE(sample.stacks[0].same);
}

// Functions written in C have no frame: the source tells which one a line calls, where it can be read.
TEST_P(ReadPython, WhatALineCallsIsToldBySource) {
  const std::string path = std::filesystem::temp_directory_path() / ("calls-" + std::to_string(::getpid()) + ".py");
  std::ofstream(path) << "import sys, time\n"
                         "def wait(lock):\n"
                         "    print('ready', flush=True); sys.stdin.buffer.raw.read(1)\n"
                         "    print('more', flush=True)\n"
                         "    [time][0].sleep(\n"
                         "        1000)\n"
                         "wait(None)\n";
  const timespec old[2]{{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  Program program(GetParam().program, "import runpy, sys; runpy.run_path(sys.argv[1])", path);
  ASSERT_EQ(program.line(), "ready");
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  const auto last = [&](std::size_t count) {
    const auto& frames = *sample.stacks.at(0).frames;
    std::vector<std::string> texts;
    for (std::size_t i = frames.size() - std::min(frames.size(), count); i < frames.size(); ++i)
      texts.push_back(process->text(frames[i]));
    return texts;
  };
  const bool has_columns = name("a.b") == "a.b";  // since 3.11, both
  const auto at = [&](const std::string& line, const std::string& call) {
    std::vector<std::string> wanted{"<module> (" + path + ":7)", "wait (" + path + ":" + line + ")"};
    if (has_columns) wanted.push_back(call + "() (" + path + ":" + line + ")");
    return sample_until(*process, sample, [&](const StackSample&) { return last(wanted.size()) == wanted; });
  };
  EXPECT_TRUE(at("3", "sys.stdin.buffer.raw.read")) << testing::PrintToString(last(3));
  ASSERT_TRUE(program.say("on"));
  ASSERT_EQ(program.line(), "more");
  EXPECT_TRUE(at("5", "sleep")) << testing::PrintToString(last(3));
  EXPECT_EQ(process->sample(sample), PythonProcess::Outcome::kRead);
  EXPECT_TRUE(sample.stacks[0].same);
  std::filesystem::remove(path);
}

// A worker that is forked late runs what its parent read, whatever the file holds by then.
TEST_P(ReadPython, WhatAForkedWorkerCallsIsNotToldByAFileThatWasWrittenMeanwhile) {
  const std::string path = std::filesystem::temp_directory_path() / ("forks-" + std::to_string(::getpid()) + ".py");
  std::ofstream(path) << "import os, sys, time\n"
                         "print('ready', flush=True); sys.stdin.readline()\n"
                         "child = os.fork()\n"
                         "if child: print(child, flush=True)\n"
                         "time.sleep(1000)\n";
  const timespec old[2]{{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  Program program(GetParam().program, "import runpy, sys; runpy.run_path(sys.argv[1])", path);
  ASSERT_EQ(program.line(), "ready");
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0), 0);
  ASSERT_TRUE(program.say("on"));
  const std::int64_t child = std::stoll(program.line());
  auto process = PythonProcess::attach(child);
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  const auto last = [&] { return process->text(sample.stacks.at(0).frames->back()); };
  EXPECT_TRUE(sample_until(*process, sample, [&](const StackSample& s) {
    return s.stacks.size() == 1 && last() == "<module> (" + path + ":5)";
  })) << last();
  std::filesystem::remove(path);
}

TEST_P(ReadPython, ThreadsHaveTheirOwnStacksAndNumbers) {
  Program program(GetParam().program, R"(
import threading, time
def waits_forever():
    print('thread', threading.get_native_id(), flush=True)
    time.sleep(1000)
def start():
    threading.Thread(target=waits_forever).start()
    time.sleep(1000)
start()
)");
  const std::string said = program.line();
  ASSERT_TRUE(said.starts_with("thread "));
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  ASSERT_TRUE(sample_until(*process, sample, [](const StackSample& s) {
    return s.stacks.size() == 2 && s.stacks[0].frames->size() == 2 && s.stacks[0].gil == Gil::kNotHeld &&
           s.stacks[1].gil == Gil::kNotHeld;
  }));
  EXPECT_TRUE(sample.stacks[0].main);
  EXPECT_EQ(sample.stacks[0].tid, program.pid());
  EXPECT_THAT(names(*process, sample.stacks[0]), ElementsAre("<module>", "start"));
  EXPECT_FALSE(sample.stacks[1].main);
  EXPECT_EQ(std::to_string(sample.stacks[1].tid), said.substr(said.find(' ') + 1));
  EXPECT_EQ(names(*process, sample.stacks[1]).back(), "waits_forever");
  EXPECT_EQ(names(*process, sample.stacks[1]).front(), name("Thread._bootstrap"));
}

constexpr const char* kOneBusyThread = R"(
import threading, time
def busy():
    print('ready', flush=True)
    x = 0
    while True: x += 1
threading.Thread(target=busy, daemon=True).start()
time.sleep(1000)
)";

struct GilSeen {
  int by_the_busy = 0, by_the_sleeper = 0;
};

// Who was seen to hold the GIL in so many looks, or until the busy thread was.
GilSeen who_holds_the_gil(const std::string& python, int looks, bool until_seen) {
  GilSeen seen;
  Program program(python, kOneBusyThread);
  EXPECT_EQ(program.line(), "ready");
  auto process = PythonProcess::attach(program.pid());
  if (!process) return ADD_FAILURE() << process.error().what, seen;
  StackSample sample;
  for (int i = 0; i < looks && !(until_seen && seen.by_the_busy > 0); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (process->sample(sample) != PythonProcess::Outcome::kRead) continue;
    for (const ThreadStack& stack : sample.stacks) {
      EXPECT_NE(stack.gil, Gil::kUnknown);
      if (stack.gil == Gil::kHeld) ++(stack.main ? seen.by_the_sleeper : seen.by_the_busy);
    }
  }
  return seen;
}

TEST_P(ReadPython, TheThreadThatRunsHoldsTheGil) {
  EXPECT_GT(who_holds_the_gil(GetParam().program, 30'000, true).by_the_busy, 0);
}

TEST_P(ReadPython, OnAQuietMachineTheThreadThatRunsHoldsTheGilNearlyAlways) {
  constexpr int kLooks = 200;
  const GilSeen seen = who_holds_the_gil(GetParam().program, kLooks, false);
  EXPECT_GT(seen.by_the_busy, kLooks * 8 / 10);
  EXPECT_LT(seen.by_the_sleeper, kLooks / 10);
}

TEST_P(ReadPython, GeneratorsAndCoroutinesStandInTheirCallersStack) {
  Program program(GetParam().program, R"(
import asyncio, time
def numbers():
    yield 1
    print('ready', flush=True)
    time.sleep(1000)
def consume():
    return list(numbers())
async def inner():
    consume()
async def outer():
    await inner()
asyncio.new_event_loop().run_until_complete(outer())
)");
  ASSERT_EQ(program.line(), "ready");
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  ASSERT_EQ(process->sample(sample), PythonProcess::Outcome::kRead);
  ASSERT_EQ(sample.stacks.size(), 1U);
  const auto stack = names(*process, sample.stacks[0]);
  ASSERT_GE(stack.size(), 5U);
  EXPECT_EQ(stack.front(), "<module>");
  EXPECT_THAT(std::vector(stack.end() - 4, stack.end()), ElementsAre("outer", "inner", "consume", "numbers"));
}

TEST_P(ReadPython, WhatIsTooDeepKeepsItsInnermostFramesAndSaysSo) {
  Program program(GetParam().program, R"(
import sys, time
sys.setrecursionlimit(2000)
def down(n):
    if n > 0: down(n - 1)
    else: bottom()
def bottom():
    print('ready', flush=True)
    time.sleep(1000)
down(600)
)");
  ASSERT_EQ(program.line(), "ready");
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  ASSERT_EQ(process->sample(sample), PythonProcess::Outcome::kRead);
  ASSERT_EQ(sample.stacks.size(), 1U);
  EXPECT_TRUE(sample.stacks[0].cut);
  const auto stack = names(*process, sample.stacks[0]);
  EXPECT_EQ(stack.size(), kMostFrames);
  EXPECT_EQ(stack.front(), "down");
  EXPECT_EQ(stack.back(), "bottom");
}

TEST_P(ReadPython, NamesOfAllScriptsAreUtf8) {
  Program program(GetParam().program,
                  "import time\n"
                  "def na\xC3\xAFve(): \xE5\x87\xBD\xE6\x95\xB0()\n"
                  "def \xE5\x87\xBD\xE6\x95\xB0():\n"
                  "    print('ready', flush=True); time.sleep(1000)\n"
                  "na\xC3\xAFve()\n");
  ASSERT_EQ(program.line(), "ready");
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  ASSERT_EQ(process->sample(sample), PythonProcess::Outcome::kRead);
  ASSERT_EQ(sample.stacks.size(), 1U);
  EXPECT_THAT(names(*process, sample.stacks[0]), ElementsAre("<module>", "na\xC3\xAFve", "\xE5\x87\xBD\xE6\x95\xB0"));
}

// The program says in a shared file what it does, and calls small functions all the time on the way: nearly every stack
// changes while it is read. No stack may be one that cannot be, and what they say must agree with the program.
constexpr const char* kTruth = R"(
import mmap, sys, time
where = mmap.mmap(int(sys.argv[1]), 1)
def leaf(i): return i + 1
def twig(i): return leaf(i) + leaf(i + 1)
def other(i): return len(str(i))
def load(until):
    while time.perf_counter() < until:
        for i in range(20): twig(i)
def forward(until):
    while time.perf_counter() < until:
        for i in range(20): other(i)
        [leaf(x) for x in range(10)]
def step():
    where[0] = 1
    load(time.perf_counter() + 0.010)
    where[0] = 2
    forward(time.perf_counter() + 0.005)
    where[0] = 3
    time.sleep(0.002)
    where[0] = 0
print('ready', flush=True)
while True: step()
)";

struct Compared {
  int taken = 0, rejected = 0, mixed = 0, compared = 0, agreed = 0;
};

// Stacks of a program that says meanwhile where it is; each must be one that it can have, but for mixtures.
void compare_stacks(const std::string& python, int enough, Compared& all) {
  char path[] = "/tmp/headroom-truth-XXXXXX";
  const Fd file(::mkstemp(path));
  ASSERT_EQ(::write(file.get(), "\0", 1), 1);
  ::unlink(path);
  Program program(python, kTruth, std::to_string(file.get()));
  ASSERT_EQ(program.line(), "ready");
  const auto now = [&] {
    char what = 0;
    return ::pread(file.get(), &what, 1, 0) == 1 ? static_cast<int>(what) : -1;
  };
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  constexpr int kMost = 100'000;
  for (int i = 0; i < kMost && all.compared < enough; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(1700));
    const int before = now();
    const Nanos begin = monotonic_now(), cpu = thread_cpu_now();
    ASSERT_NE(process->sample(sample), PythonProcess::Outcome::kGone);
    const Nanos waited = (monotonic_now() - begin) - (thread_cpu_now() - cpu);
    const int after = now();
    if (waited > kMillisecond / 10) continue;  // something else had the core in the middle of it
    ++all.taken;
    all.rejected += static_cast<int>(sample.rejected);
    if (sample.stacks.empty()) continue;
    const auto stack = names(*process, sample.stacks[0]);
    // Every stack should be one of these.
    static const std::vector<std::vector<std::string>> kAfterStep{{},
                                                                  {"load"},
                                                                  {"load", "twig"},
                                                                  {"load", "twig", "leaf"},
                                                                  {"forward"},
                                                                  {"forward", "other"},
                                                                  {"forward", "<listcomp>"},
                                                                  {"forward", "<listcomp>", "leaf"},
                                                                  {"forward", "leaf"}};
    if (stack == std::vector<std::string>{"<module>"}) continue;
    ASSERT_GE(stack.size(), 2U) << testing::PrintToString(stack);
    ASSERT_EQ(stack[0] + stack[1], "<module>step") << testing::PrintToString(stack);
    std::vector<std::string> after_step(stack.begin() + 2, stack.end());
    if (after_step.size() > 1 && after_step[1] == "forward.<locals>.<listcomp>") after_step[1] = "<listcomp>";
    // Functions a microsecond long come and go while they are copied: a mixture is very rare, and not impossible.
    if (std::find(kAfterStep.begin(), kAfterStep.end(), after_step) == kAfterStep.end()) ++all.mixed;
    if (before != after || before == 0) continue;
    ++all.compared;
    const std::string place = stack.size() > 2 ? stack[2] : "";
    all.agreed += static_cast<int>(place == (before == 1 ? "load" : before == 2 ? "forward" : ""));
  }
}

TEST_P(ReadPython, WhatABusyProgramSaysOfItselfIsWhatIsRead) {
  Compared seen;
  compare_stacks(GetParam().program, 20, seen);
  EXPECT_GT(seen.agreed, 0);
}

TEST_P(ReadPython, OnAQuietMachineNearlyEveryStackIsWhole) {
  // More than one mixture in a hundred is too many; where a thousand looks say so by a few, five thousand judge.
  constexpr int kEnough = 1000, kSurely = 5000;
  Compared seen;
  compare_stacks(GetParam().program, kEnough, seen);
  if (seen.mixed > seen.taken / 100) compare_stacks(GetParam().program, kSurely, seen);
  EXPECT_GE(seen.compared, kEnough);
  EXPECT_GT(seen.agreed, seen.compared * 95 / 100);
  EXPECT_LT(seen.rejected, seen.taken / 10);
  EXPECT_LE(seen.mixed, seen.taken / 100);
  RecordProperty("mixed", seen.mixed);
  RecordProperty("rejected", seen.rejected);
  RecordProperty("agreed_of", fmt::format("{}/{}", seen.agreed, seen.compared));
}

TEST_P(ReadPython, ForkedWorkersAreReadLikeTheirParent) {
  Program program(GetParam().program, R"(
import os, threading, time
def feeder(): time.sleep(1000)
def worker_loop():
    threading.Thread(target=feeder, daemon=True).start()
    print(os.getpid(), threading.get_native_id(), flush=True)
    time.sleep(1000)
def start():
    if os.fork() == 0: worker_loop()
    else: os.wait()
start()
)");
  const std::string said = program.line();
  const auto pid = std::stoll(said);
  EXPECT_EQ(said, fmt::format("{} {}", pid, pid));
  auto parent = PythonProcess::attach(program.pid()), child = PythonProcess::attach(pid);
  ASSERT_TRUE(parent && child);
  StackSample sample;
  ASSERT_TRUE(sample_until(*child, sample, [](const StackSample& s) { return s.stacks.size() == 2; }));
  EXPECT_TRUE(sample.stacks[0].main);
  EXPECT_EQ(sample.stacks[0].tid, pid);
  EXPECT_THAT(names(*child, sample.stacks[0]), ElementsAre("<module>", "start", "worker_loop"));
  EXPECT_EQ(names(*child, sample.stacks[1]).back(), "feeder");
  ASSERT_EQ(parent->sample(sample), PythonProcess::Outcome::kRead);
  EXPECT_THAT(names(*parent, sample.stacks[0]), ElementsAre("<module>", "start"));
}

TEST_P(ReadPython, AProcessThatEndsOrBecomesAnotherIsNotReadOn) {
  Program program(GetParam().program, R"(
import os, sys, time
print('ready', flush=True)
sys.stdin.readline()
os.execv('/bin/sleep', ['sleep', '1000'])
)");
  ASSERT_EQ(program.line(), "ready");
  auto process = PythonProcess::attach(program.pid());
  ASSERT_TRUE(process) << process.error().what;
  StackSample sample;
  ASSERT_EQ(process->sample(sample), PythonProcess::Outcome::kRead);
  ASSERT_EQ(program.say("go"), true);
  for (int i = 0; i < 500 && process->sample(sample) == PythonProcess::Outcome::kRead; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  EXPECT_NE(process->sample(sample), PythonProcess::Outcome::kRead);
  EXPECT_TRUE(sample.stacks.empty());
  EXPECT_EQ(PythonProcess::attach(program.pid()).error().code, Errc::kNotFound);
  const auto pid = program.pid();
  program.stop();
  EXPECT_EQ(process->sample(sample), PythonProcess::Outcome::kGone);
  EXPECT_EQ(PythonProcess::attach(pid).error().code, Errc::kIo);
}

TEST(Attach, SaysWhyNot) {
  Program sleep("/bin/sh", "echo ready; exec sleep 1000");
  ASSERT_EQ(sleep.line(), "ready");
  EXPECT_EQ(PythonProcess::attach(sleep.pid()).error().code, Errc::kNotFound);
  for (const Interpreter& old : interpreters()) {
    if (old.version != "2.7" && old.version != "3.6" && old.version != "3.7") continue;
    Program program(old.program, "import sys, time\nprint('ready')\nsys.stdout.flush()\ntime.sleep(1000)");
    ASSERT_EQ(program.line(), "ready");
    const auto process = PythonProcess::attach(program.pid());
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().code, Errc::kUnsupported);
    EXPECT_THAT(process.error().what, HasSubstr(old.version + " is older than 3.8"));
  }
}

TEST(Attach, AnotherUsersProcessIsDeclinedWithTheReason) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  Program program("/usr/bin/python3", "import time\nprint('ready', flush=True)\ntime.sleep(1000)");
  ASSERT_EQ(program.line(), "ready");
  int out[2];
  ASSERT_EQ(::pipe(out), 0);
  const pid_t reader = ::fork();
  if (reader == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    const auto process = PythonProcess::attach(program.pid());
    const std::string said = process ? "read" : process.error().what + "|" + process.error().hint;
    ::_exit(::write(out[1], said.data(), said.size()) > 0 ? 0 : 1);
  }
  ::close(out[1]);
  ::waitpid(reader, nullptr, 0);
  char said[512] = {};
  EXPECT_GT(::read(out[0], said, sizeof said - 1), 0);
  ::close(out[0]);
  EXPECT_STREQ(said, "it belongs to another user (uid 0)|run Headroom as that user, or as root");
}

}  // namespace
}  // namespace headroom::python
