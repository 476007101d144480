// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "batch/journal_testing.h"

namespace headroom::batch {
namespace {

using testing::BatchJournal;
using ::testing::HasSubstr;

TEST_F(BatchJournal, IsForItsOwnerAndHoldsNoSecrets) {
  begin({"a"});
  Attempt attempt{.id = journal->next_attempt(), .number = 1, .boot_id = "boot"};
  attempt.argv = {"train.py", "--api-key=hunter2hunter2", "--lr=0.1"};
  attempt.environment = {{"PLAIN", "hunter2"},
                         {"WANDB_API_KEY", "hunter2hunter2"},
                         {"EPOCHS", "3"},
                         {"DATABASE", "postgres://me:hunter2@host/db"}};
  attempt.from_env_file = 1;
  journal->note_started(attempt, known[0].key);
  attempt.outcome = AttemptOutcome::kFailed;
  attempt.parameters_resolved = {{"lr", "0.1"}, {"api_key", "hunter2"}};
  journal->note_ended(attempt);
  ASSERT_TRUE(journal->commit());
  const Attempt read = contents().attempts.front();
  EXPECT_EQ(read.argv, (std::vector<std::string>{"train.py", "--api-key=***", "--lr=0.1"}));
  ASSERT_EQ(read.environment.size(), 4U);
  EXPECT_EQ(read.environment[0].second.substr(0, 3), "***");
  EXPECT_EQ(read.environment[1].second.substr(0, 3), "***");
  EXPECT_EQ(read.environment[2].second, "3");
  EXPECT_EQ(read.environment[3].second, "postgres://me:***@host/db");
  ASSERT_EQ(read.parameters_resolved.size(), 2U);
  EXPECT_EQ(read.parameters_resolved[0].second, "0.1");
  EXPECT_EQ(read.parameters_resolved[1].second.substr(0, 3), "***");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    struct stat info {};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    if (S_ISREG(info.st_mode)) {
      EXPECT_EQ(info.st_mode & 0777U, 0600U) << entry.path();
    }
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(bytes.find("hunter2"), std::string::npos) << entry.path();
  }
}

struct DamagedJournal : BatchJournal {
  void some_results() {
    begin({"a", "b"});
    end(start(0), AttemptOutcome::kSucceeded);
    ASSERT_TRUE(journal->commit());
    journal->sync();
    EXPECT_EQ(journal->damage(), "");
    EXPECT_EQ(journal->check_whole().words, "");
  }
  std::string file(const char* suffix) const { return journal_path(folder) + suffix; }
};

TEST_F(DamagedJournal, ThatWasRemovedIsWrittenAgain) {
  some_results();
  std::filesystem::remove(file(""));
  EXPECT_THAT(journal->damage(), HasSubstr("was removed"));
  end(start(1), AttemptOutcome::kSucceeded);
  ASSERT_TRUE(journal->commit());
  EXPECT_THAT(journal->check_whole().words,
              HasSubstr("written again, and it is whole: it holds all 2 attempts of this run that ended"));
  journal.reset();
  const Contents found = contents();
  ASSERT_EQ(found.attempts.size(), 2U);
  EXPECT_EQ(found.attempts[1].outcome, AttemptOutcome::kSucceeded);
}

TEST_F(DamagedJournal, ThatIsBackAtTheEndIsCalledWhole) {
  some_results();
  std::filesystem::rename(file(""), file(".aside"));
  EXPECT_THAT(journal->damage(), HasSubstr("was removed"));
  std::filesystem::rename(file(".aside"), file(""));
  const auto whole = journal->check_whole();
  EXPECT_THAT(whole.words, HasSubstr("is whole: it holds the one attempt of this run that ended"));
  EXPECT_TRUE(whole.kept) << "nothing of it is lost";
}

TEST_F(DamagedJournal, ThatWasRemovedBeforeItsFirstResultIsWrittenAgain) {
  begin({"a"});
  std::filesystem::remove(file(""));
  EXPECT_THAT(journal->damage(), HasSubstr("was removed"));
  EXPECT_THAT(journal->check_whole().words, HasSubstr("it holds this run, of which no attempt has ended"));
  EXPECT_TRUE(std::filesystem::exists(file("")));
}

TEST_F(DamagedJournal, ThatWasReplacedIsNamed) {
  some_results();
  std::filesystem::rename(file(""), file(".mine"));
  std::ofstream(file("")) << "somebody else's";
  EXPECT_THAT(journal->damage(), HasSubstr("replaced"));
  std::filesystem::remove(file("-wal"));
  EXPECT_THAT(journal->check_whole().words, HasSubstr("not in the journal"));
}

TEST_F(DamagedJournal, WhoseLogWasCutOffOrRemovedIsNamed) {
  some_results();
  std::filesystem::resize_file(file("-wal"), 0);
  EXPECT_THAT(journal->damage(), HasSubstr("cut off"));
  EXPECT_THAT(journal->check_whole().words, HasSubstr("1 of 1 results"));
}

TEST_F(DamagedJournal, WhoseLogWasCutOffRightAfterItsFirstResultsIsNamed) {
  begin({"a"});
  end(start(0), AttemptOutcome::kSucceeded);
  ASSERT_TRUE(journal->commit());
  std::filesystem::resize_file(file("-wal"), 0);
  EXPECT_THAT(journal->damage(), HasSubstr("cut off"));
}

TEST_F(DamagedJournal, WhoseLogWasCutOffAndWrittenOnIsNamed) {
  some_results();
  std::filesystem::resize_file(file("-wal"), 0);
  end(start(1), AttemptOutcome::kSucceeded);
  ASSERT_TRUE(journal->commit());
  EXPECT_THAT(journal->damage(), HasSubstr("cut off"));
}

TEST_F(DamagedJournal, WhichCannotBeCopiedIsNotCalledDamaged) {
  some_results();
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nowhere", 1);
  EXPECT_EQ(journal->check_whole().words, "");
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
}

TEST_F(DamagedJournal, WhoseLogIsGarbledIsNamedAtTheEnd) {
  some_results();
  const auto size = std::filesystem::file_size(file("-wal"));
  std::fstream log(file("-wal"), std::ios::in | std::ios::out | std::ios::binary);
  for (std::size_t at = 100; at + 100 < size; at += 500) {
    log.seekp(static_cast<std::streamoff>(at));
    log << "garbage garbage garbage";
  }
  log.flush();
  EXPECT_THAT(journal->check_whole().words, HasSubstr("those tasks run again"));
}

TEST_F(DamagedJournal, MovedWithItsFolderItIsWhole) {
  some_results();
  std::filesystem::rename(folder, folder + ".moved");
  EXPECT_EQ(journal->damage(), "");
  EXPECT_EQ(journal->check_whole().words, "");
  std::filesystem::rename(folder + ".moved", folder);
}

}  // namespace
}  // namespace headroom::batch
