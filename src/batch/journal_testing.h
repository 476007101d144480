// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "batch/journal.h"

// A journal in a folder of its own, and what a batch does with it.
namespace headroom::batch::testing {

inline std::vector<TaskSpec> specs(const std::vector<std::string>& names) {
  std::vector<TaskSpec> result;
  for (const auto& name : names) result.push_back({.name = name, .identity = "id of " + name, .group = "g"});
  return result;
}

struct BatchJournal : ::testing::Test {
  std::string folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "headroom-journal-XXXXXX").string();
    return std::string(::mkdtemp(name.data()));
  }();
  std::unique_ptr<Journal> journal;
  std::vector<KnownTask> known;

  ~BatchJournal() override {
    journal.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  // What a start of `headroom batch` does with it.
  void begin(const std::vector<std::string>& names, Journal::Medium medium = Journal::Medium::kLocal) {
    journal.reset();
    auto opened = Journal::open(folder, medium);
    ASSERT_TRUE(opened) << opened.error().what;
    journal = std::move(*opened);
    auto registered = journal->register_tasks(specs(names));
    ASSERT_TRUE(registered) << registered.error().what;
    known = std::move(*registered);
    ASSERT_TRUE(journal->begin_run({.start = 5, .command = "headroom batch x"}));
  }
  // Dies without a word: what is queued is lost.
  void die() { journal.reset(); }

  AttemptId start(std::size_t task, pid_t pid = 77, Nanos since_boot = 123) {
    const AttemptId id = start_queued(task, pid, since_boot);
    EXPECT_TRUE(journal->commit());
    return id;
  }
  AttemptId start_queued(std::size_t task, pid_t pid = 77, Nanos since_boot = 123) {
    const AttemptId id = next ? next : journal->next_attempt();
    next = id + 1;
    Attempt attempt{.id = id, .number = 1, .boot_id = "boot"};
    attempt.start = 9;
    journal->note_started(attempt, known[task].key);
    journal->note_process(id, pid, since_boot);
    return id;
  }
  void end(AttemptId id, AttemptOutcome outcome) {
    Attempt attempt{.id = id};
    attempt.end = 10, attempt.outcome = outcome;
    journal->note_ended(attempt);
  }
  [[nodiscard]] Contents contents() const {
    auto read = read_journal(folder);
    EXPECT_TRUE(read) << read.error().what;
    return read ? *read : Contents{};
  }
  void resume(const std::vector<std::string>& names) {
    next = 0;
    begin(names);
  }
  AttemptId next = 0;
};

}  // namespace headroom::batch::testing
