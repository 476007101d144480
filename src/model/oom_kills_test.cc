// SPDX-License-Identifier: Apache-2.0
#include "model/oom_kills.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(OomKills, WhatPyTorchSaysOfAWorkerThatIsGone) {
  EXPECT_EQ(gone_loader_worker("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. "),
            (GoneWorker{.pid = 4711, .killed = true}));
  EXPECT_EQ(gone_loader_worker("RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly"),
            (GoneWorker{.pid = 12, .killed = false}));
}

TEST(OomKills, OtherEndsOfWorkersAreNoKills) {
  for (const char* line :
       {"RuntimeError: DataLoader worker (pid 4711) is killed by signal: Segmentation fault. ",
        "ERROR: Unexpected bus error encountered in worker. DataLoader worker (pid 7) is killed by signal: Bus error. "
        "It is possible that dataloader's workers are out of shared memory.",
        "DataLoader worker (pid ) is killed by signal: Killed.", "a DataLoader worker is killed by signal: Killed", ""})
    EXPECT_FALSE(gone_loader_worker(line)) << line;
}

}  // namespace
}  // namespace headroom
