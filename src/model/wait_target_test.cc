// SPDX-License-Identifier: Apache-2.0
#include "model/wait_target.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(WaitTargets, AreReadAsTheyAreWritten) {
  const WaitTarget pipe{WaitKind::kPipe, "loader.py", {42, 43}};
  EXPECT_EQ(to_text(pipe), "pipe pids=42,43 loader.py");
  for (const WaitTarget& target :
       {pipe, WaitTarget{WaitKind::kConnection, "10.0.0.5:443"}, WaitTarget{WaitKind::kAccepted, "8888"},
        WaitTarget{WaitKind::kUnixSocket, "python", {7}}, WaitTarget{WaitKind::kChild, "nvcc", {9}},
        WaitTarget{WaitKind::kFile, "/data/my photos/1 .jpg"}, WaitTarget{WaitKind::kTerminal, "/dev/pts/3"},
        WaitTarget{WaitKind::kDevice, "/dev/nvidia0"}})
    EXPECT_EQ(wait_target_of(to_text(target)), target) << to_text(target);
}

TEST(WaitTargets, AreWordsForPeople) {
  const WaitTarget pipe{WaitKind::kPipe, "loader.py", {42, 43}};
  EXPECT_EQ(words_of(pipe, ""), "on a pipe from processes called loader.py");
  EXPECT_EQ(words_of(pipe, "process 42 (loader.py)"), "on a pipe from process 42 (loader.py)");
  const WaitTarget connection{WaitKind::kConnection, "10.0.0.5:443"};
  EXPECT_EQ(words_of(connection, ""), "on a connection to 10.0.0.5:443");
  EXPECT_EQ(words_of(connection, "process 7"), "on a connection to 10.0.0.5:443, process 7");
  EXPECT_EQ(words_of({WaitKind::kAccepted, "8888"}, ""), "at its own port 8888, for who connects to it");
  EXPECT_EQ(words_of({WaitKind::kChild, "nvcc", {9}}, "process 9 (nvcc)"), "for the end of process 9 (nvcc)");
  EXPECT_EQ(words_of({WaitKind::kFile, "/data/"}, ""), "for files in /data/");
  EXPECT_EQ(words_of({WaitKind::kFile, "/data/a.npy"}, ""), "for the file /data/a.npy");
  EXPECT_EQ(words_of({WaitKind::kFile, "file 1"}, ""), "for file 1") << "its name was hidden";
  EXPECT_EQ(words_of({WaitKind::kFileLock, "file 1"}, ""), "at a lock on file 1");
}

TEST(WaitTargets, OfANewerProgramOrNobodyAreNone) {
  for (const auto* text : {"", "carrier_pigeon coo", "Pipe x", "pipe pids=a x", "pipe pids= x"})
    EXPECT_EQ(wait_target_of(text), std::nullopt) << text;
}

}  // namespace
}  // namespace headroom
