// SPDX-License-Identifier: Apache-2.0
#include "pump/pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/time.h"

namespace headroom::pump {
namespace {

struct Pipe {
  explicit Pipe(int flags = 0) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | flags), 0);
    out = Fd(ends[0]);
    in = Fd(ends[1]);
  }
  Fd out, in;
};

std::string all_of(int fd) {
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(fd, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
  return text;
}

class PumpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_ = Fd(ends[0]);
    theirs_ = Fd(ends[1]);
  }
  void start() {
    thread_ = std::thread([this] {
      passed_ = pass_on({.in = job_.out.get(),
                         .out = outside_.in.get(),
                         .copy = copy_.in.get(),
                         .control = theirs_.get(),
                         .stream = 2});
      outside_.in.reset();
    });
  }
  void write(std::string_view text) { ASSERT_TRUE(write_all(job_.in.get(), text)); }
  Passed passed() {
    thread_.join();
    return passed_;
  }
  End end() { return passed().end; }

  Pipe job_, outside_, copy_{O_NONBLOCK};
  Fd ours_, theirs_;
  std::thread thread_;
  Passed passed_;
};

TEST_F(PumpTest, PassesOnAndCopiesWithTheInstant) {
  const Nanos before = boottime_now();
  start();
  write("one\ntwo");
  job_.in.reset();
  EXPECT_EQ(all_of(outside_.out.get()), "one\ntwo");
  EXPECT_EQ(end(), End::kDone);
  const std::string copied = all_of(copy_.out.get());
  CopyHeader header;
  ASSERT_GE(copied.size(), sizeof header);
  std::memcpy(&header, copied.data(), sizeof header);
  EXPECT_EQ(copied.substr(sizeof header), "one\ntwo");
  EXPECT_EQ(header.stream, 2);
  EXPECT_EQ(header.bytes, 7);
  EXPECT_GE(header.at, before);
  EXPECT_LE(header.at, boottime_now());
}

TEST_F(PumpTest, ACopyThatNobodyTakesHoldsNothingUpAndIsCounted) {
  start();
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "a line\n";
  std::thread writer([&] {
    write(text);
    job_.in.reset();
  });
  EXPECT_EQ(all_of(outside_.out.get()), text);
  writer.join();
  EXPECT_EQ(end(), End::kDone);
  const std::string copied = all_of(copy_.out.get());
  EXPECT_LT(copied.size(), text.size());
  CopyHeader header;
  for (std::size_t at = 0; at < copied.size(); at += sizeof header + header.bytes) {
    std::memcpy(&header, copied.data() + at, sizeof header);
    ASSERT_LE(at + sizeof header + header.bytes, copied.size()) << "records are whole";
  }
}

TEST_F(PumpTest, WithoutARecorderItGoesOn) {
  copy_.out.reset();
  ours_.reset();
  start();
  write("words");
  job_.in.reset();
  EXPECT_EQ(all_of(outside_.out.get()), "words");
  EXPECT_EQ(end(), End::kDone);
}

TEST_F(PumpTest, WhenTheReaderGoesItEndsWithoutBeingWrittenTo) {
  start();
  outside_.out.reset();
  EXPECT_EQ(end(), End::kGone);
}

TEST_F(PumpTest, AnswersWhenAllThatWasWrittenHasBeenPassedOn) {
  start();
  for (int i = 0; i < 100; ++i) {
    write("words");
    ASSERT_EQ(::write(ours_.get(), "f", 1), 1);
    char reply = 0;
    ASSERT_EQ(::read(ours_.get(), &reply, 1), 1);
    char words[16];
    pollfd there{outside_.out.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&there, 1, 0), 1) << "it is there already";
    ASSERT_EQ(::read(outside_.out.get(), words, sizeof words), 5);
  }
  job_.in.reset();
  EXPECT_EQ(end(), End::kDone);
}

TEST_F(PumpTest, WhatADeviceDoesNotTakeIsDroppedAndSaidAndTheJobGoesOn) {
  outside_.in = Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(outside_.in);
  start();
  for (int i = 0; i < 3; ++i) {  // more than a pipe holds
    write(std::string(100'000, 'x'));
    ASSERT_EQ(::write(ours_.get(), "f", 1), 1);
    unsigned char error = 0;
    ASSERT_EQ(::read(ours_.get(), &error, 1), 1);
    EXPECT_EQ(error, ENOSPC);
  }
  job_.in.reset();
  EXPECT_EQ(passed(), (Passed{End::kDone, ENOSPC}));
  EXPECT_FALSE(all_of(copy_.out.get()).empty()) << "what it says is read all the same";
}

TEST(PassedTest, IsAnExitCode) {
  for (const Passed passed : {Passed{End::kDone, 0}, Passed{End::kGone, 0}, Passed{End::kDone, ENOSPC},
                              Passed{End::kDone, 1}, Passed{End::kDone, 133}})
    EXPECT_EQ(passed_of(exit_code_of(passed)), passed);
  EXPECT_EQ(exit_code_of({End::kGone, EIO}), exit_code_of({End::kDone, EIO})) << "either way its work has ended";
  for (const int other : {1, 2, 4, 64}) EXPECT_FALSE(passed_of(other)) << other;
}

TEST_F(PumpTest, AnOutputThatIsMadeNonBlockingIsWaitedFor) {
  const int outside = outside_.in.get();  // the pump closes it when it is done
  ::fcntl(outside, F_SETFL, O_NONBLOCK);
  start();
  const std::string text(300'000, 'x');
  std::thread writer([&] {
    write(text);
    job_.in.reset();
  });
  pollfd room{.fd = outside, .events = POLLOUT, .revents = 0};
  while (::poll(&room, 1, 0) > 0) std::this_thread::yield();  // until it is full
  EXPECT_EQ(all_of(outside_.out.get()), text);
  writer.join();
  EXPECT_EQ(end(), End::kDone);
}

}  // namespace
}  // namespace headroom::pump
