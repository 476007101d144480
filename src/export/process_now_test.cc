// SPDX-License-Identifier: Apache-2.0
#include "export/process_now.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace headroom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ThreadNow sleeping(std::int64_t tid, WaitChannel in, std::vector<WaitTarget> targets = {}) {
  return {.tid = tid, .name = "worker", .state = 'S', .waits_in = in, .waits_for = std::move(targets)};
}

ProcessNow process(std::vector<ThreadNow> threads) {
  ProcessNow now{.pid = 7, .command = "python3 train.py", .python = "3.11"};
  now.threads = std::move(threads);
  now.threads.front().main = true;
  now.threads.front().frames = {"Queue.get (/usr/lib/python3.11/queue.py:171)", "main (/u/train.py:41)"};
  return now;
}

TEST(ProcessesNow, WhatAThreadDoesIsSaidByWhatIsKnownOfIt) {
  const auto said = [](ThreadNow thread) { return threads_text(process({std::move(thread)})); };
  EXPECT_THAT(said(sleeping(7, WaitChannel::kFutex)), HasSubstr("thread 7 (worker), main: waits on a lock or event\n"));
  EXPECT_THAT(said(sleeping(7, WaitChannel::kPipe, {{WaitKind::kPipe, "cat", {9}}})),
              HasSubstr(": waits on a pipe from process 9 (cat)\n"));
  EXPECT_THAT(
      said(sleeping(7, WaitChannel::kPoll, {{WaitKind::kConnection, "10.0.0.5:443"}, {WaitKind::kPipe, "cat"}})),
      HasSubstr(": waits on a connection to 10.0.0.5:443 or on a pipe from processes called cat\n"));
  EXPECT_THAT(said(sleeping(7, WaitChannel::kUnknown)), HasSubstr(", main: sleeps\n"));
  ThreadNow blocked = sleeping(7, WaitChannel::kDisk, {{WaitKind::kFile, "/data/a.npy"}});
  blocked.state = 'D';
  EXPECT_THAT(said(blocked), HasSubstr(": is blocked in the kernel (state D): it waits for the file /data/a.npy\n"));
  blocked.state = 'T';
  EXPECT_THAT(said(blocked), HasSubstr(": is stopped by a signal\n"));
}

TEST(ProcessesNow, WhoRanMeanwhileIsNotSaidToWait) {
  ThreadNow thread = sleeping(7, WaitChannel::kPipe, {{WaitKind::kPipe, "cat", {9}}});
  thread.ran = true;
  thread.holds_gil = true;
  const ProcessNow now = process({thread});
  EXPECT_THAT(threads_text(now), HasSubstr("main: runs, and holds the interpreter's lock (GIL)\n"));
  const auto answer = nlohmann::json::parse(threads_json(now));
  EXPECT_TRUE(answer["threads"][0]["waits_for"].empty());
  EXPECT_EQ(answer["threads"][0]["holds_gil"], true);
}

TEST(ProcessesNow, ThreadsAreWithoutPythonOnlyWhereAllStacksWereRead) {
  ProcessNow now = process({sleeping(7, WaitChannel::kFutex), sleeping(8, WaitChannel::kFutex)});
  EXPECT_THAT(threads_text(now),
              HasSubstr("1 more thread, without Python\n    1 of them (worker): waits on a lock or event\n"));
  now.torn = 1;
  EXPECT_THAT(threads_text(now), Not(HasSubstr("without Python")));
  EXPECT_THAT(threads_text(now), HasSubstr("The stack of 1 thread changed while it was read"));
  now.torn = 0, now.more_interpreters = true;
  EXPECT_THAT(threads_text(now), Not(HasSubstr("without Python")));
  now.more_interpreters = false, now.left_out = 2;
  EXPECT_THAT(threads_text(now), Not(HasSubstr("without Python")));
  EXPECT_THAT(threads_text(now), HasSubstr("Of 2 more threads with Python the stack is not shown."));
}

TEST(ProcessesNow, WhyThereAreNoStacksIsSaidAndNoEscapeReachesTheTerminal) {
  ProcessNow now = process({sleeping(7, WaitChannel::kSleep)});
  now.threads.front().frames.clear();
  now.command = "evil\x1b[2J";
  now.python.clear();
  now.declined = "its memory may not be read", now.hint = "sudo";
  const std::string text = threads_text(now);
  EXPECT_THAT(text, HasSubstr("No Python stacks: its memory may not be read\n  sudo\n"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(threads_json(now))["python"].is_null());
}

}  // namespace
}  // namespace headroom
