// SPDX-License-Identifier: Apache-2.0
#include "batch/shared_work.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "batch/journal.h"

namespace headroom::batch {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TaskSpec piece_task(const std::string& name, std::vector<std::string> after = {}) {
  TaskSpec spec;
  spec.name = spec.identity = name;
  spec.group = "g";
  spec.argv = {"true", name};
  spec.after = std::move(after);
  return spec;
}

std::vector<TaskSpec> piece_tasks(int count) {
  std::vector<TaskSpec> all;
  for (int i = 0; i < count; ++i) all.push_back(piece_task(fmt::format("t{}", i)));
  return all;
}

std::vector<std::string> names_of(const SharedWork::Piece& piece) {
  std::vector<std::string> all;
  for (const TaskSpec& one : piece.tasks) all.push_back(one.name);
  return all;
}

class SharedWorkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::path(::testing::TempDir()) /
               (std::string("shared_") + ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                  .string();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  SharedWork open(const std::string& worker, const std::vector<TaskSpec>& all, const std::string& started_by = "") {
    auto work = SharedWork::open(folder_, {.name = worker, .before = {}, .started_by = started_by}, all);
    if (!work) ADD_FAILURE() << work.error().what;
    return std::move(*work);
  }
  std::optional<SharedWork::Piece> claim(SharedWork& work) {
    auto piece = work.claim();
    if (!piece) ADD_FAILURE() << piece.error().what;
    return piece ? std::move(*piece) : std::nullopt;
  }
  // In the time of this test.
  SharedWork simulated(const char* name, int tasks) {
    return SharedWork::open(folder_, {.name = name, .before = {}, .started_by = "", .now = [this] { return now_; }},
                            piece_tasks(tasks))
        .value();
  }
  // As if a worker had not been heard of for ten minutes.
  void silence(const std::string& worker) {
    const timespec old{.tv_sec = std::time(nullptr) - 600, .tv_nsec = 0};
    const timespec times[2] = {old, old};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ + "/shared/alive/" + worker).c_str(), times, 0), 0);
  }
  std::string folder_;
  Nanos now_ = 1'700'000'000 * kSecond;
};

TEST_F(SharedWorkTest, EachPieceIsOnesAlone) {
  SharedWork a = open("a", piece_tasks(3)), b = open("b", piece_tasks(3));
  std::set<std::string> seen;
  for (SharedWork* work : {&a, &b, &a}) {
    const auto piece = claim(*work);
    ASSERT_TRUE(piece);
    EXPECT_TRUE(seen.insert(names_of(*piece).front()).second);
  }
  EXPECT_FALSE(claim(b));
  EXPECT_THAT(*a.mine(), SizeIs(2));
  EXPECT_EQ(a.progress().claimed, 1U);
  EXPECT_THAT(*shared_tasks(folder_), SizeIs(3));
}

TEST_F(SharedWorkTest, ManyAtOnceDivideAndClaimEveryTaskOnce) {
  constexpr int kWorkers = 8, kTasks = 200;
  std::vector<std::vector<std::string>> got(kWorkers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i)
    threads.emplace_back([&, i] {
      auto work = SharedWork::open(folder_, {.name = fmt::format("w{}", i), .before = {}, .started_by = ""},
                                   piece_tasks(kTasks));
      ASSERT_TRUE(work) << work.error().what;
      for (;;) {
        const auto piece = work->claim();
        ASSERT_TRUE(piece) << piece.error().what;
        if (!*piece) return;
        for (const std::string& name : names_of(**piece)) got[static_cast<std::size_t>(i)].push_back(name);
        const auto ended = work->finish((*piece)->name, {});
        ASSERT_TRUE(ended && *ended);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::string> all;
  for (const auto& some : got) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kTasks));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), static_cast<std::size_t>(kTasks));
  EXPECT_FALSE(fs::exists(folder_ + "/shared/round-1")) << "one round, whoever made it";
}

TEST_F(SharedWorkTest, WhatOthersHaveTakenIsPassedOverAndWhatTheyGiveBackIsFound) {
  SharedWork a = open("a", piece_tasks(100)), b = open("b", piece_tasks(100));
  ASSERT_EQ(names_of(claim(b).value()), std::vector<std::string>{"t0"});
  std::vector<std::string> of_a;
  for (int i = 0; i < 60; ++i) of_a.push_back(claim(a).value().name);
  EXPECT_EQ(names_of(claim(b).value()), std::vector<std::string>{"t61"}) << "in the order that they stand in";
  ASSERT_TRUE(a.give_back(of_a[3], {}));
  std::set<std::string> rest;
  while (const auto piece = claim(b)) rest.insert(names_of(*piece).front());
  EXPECT_THAT(rest, SizeIs(39));
  EXPECT_TRUE(rest.contains("t4") && rest.contains("t99"));
}

TEST_F(SharedWorkTest, WhereLittleIsLeftNobodyHoldsMuch) {
  SharedWork a = open("a", piece_tasks(10)), b = open("b", piece_tasks(10));
  ASSERT_TRUE(claim(a) && claim(b));
  EXPECT_EQ(b.ahead(4), 4U);
  ASSERT_TRUE(claim(b) && claim(b));
  EXPECT_EQ(b.ahead(4), 1U) << "fewer than four for each of the two";
  EXPECT_EQ(b.ahead(0), 0U);
}

TEST_F(SharedWorkTest, WhatADeadWorkerHadIsNotLeftToTheEnd) {
  SharedWork a = simulated("a", 10), b = simulated("b", 10);
  const auto dead = claim(a), first = claim(b);
  ASSERT_TRUE(dead && first);
  now_ += 600 * kSecond;
  EXPECT_EQ(names_of(claim(b).value()), names_of(*dead)) << "though nobody has had many others yet";
  EXPECT_FALSE(b.somebody_is_silent());
}

TEST_F(SharedWorkTest, WhatADeadWorkerHadOfALaterRoundGoesBackAsWell) {
  SharedWork a = simulated("a", 3);
  ASSERT_TRUE(claim(a));
  SharedWork b = simulated("b", 5);  // t3 and t4 are another round, which a has not seen
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(claim(b));
  now_ += 600 * kSecond;
  EXPECT_EQ(names_of(claim(a).value()), std::vector<std::string>{"t1"});
  SharedWork c = simulated("c", 5);
  std::set<std::string> rest;
  while (const auto piece = claim(c)) rest.insert(names_of(*piece).front());
  EXPECT_THAT(rest, UnorderedElementsAre("t2", "t3", "t4"));
}

TEST_F(SharedWorkTest, WhatComesAfterAnotherGoesWithIt) {
  SharedWork work = open("a", {piece_task("one"), piece_task("other"), piece_task("later", {"one"})});
  const auto piece = claim(work);
  ASSERT_TRUE(piece);
  EXPECT_THAT(names_of(*piece), ElementsAre("one", "later"));
}

TEST_F(SharedWorkTest, WhatFailedIsAnotherRoundForWhoeverComesAgain) {
  SharedWork a = open("a", piece_tasks(2), "array 1");
  ASSERT_TRUE(*a.finish(claim(a)->name, {.succeeded = {"t0"}, .failed = {}}));
  ASSERT_TRUE(*a.finish(claim(a)->name, {.succeeded = {}, .failed = {"t1"}}));
  EXPECT_EQ(a.progress().failed, 1U);
  SharedWork late = open("b", piece_tasks(2), "array 1");
  EXPECT_FALSE(claim(late)) << "one that was started together with a";
  SharedWork again = open("c", piece_tasks(3), "array 2");
  const auto piece = claim(again);
  ASSERT_TRUE(piece);
  EXPECT_THAT(names_of(*piece), ElementsAre("t1"));
  EXPECT_EQ(again.progress().failed, 0U) << "it has another chance";
  ASSERT_TRUE(*again.finish(piece->name, {.succeeded = {"t1"}, .failed = {}}));
  EXPECT_THAT(names_of(*claim(again)), ElementsAre("t2")) << "and what is new";
  EXPECT_FALSE(claim(again));
}

TEST_F(SharedWorkTest, WhatHasChangedRunsAsItIsNowAndOnce) {
  SharedWork a = open("a", piece_tasks(2));
  std::vector<TaskSpec> changed = piece_tasks(2);
  changed[1].identity = "another";
  changed[1].argv = {"false"};
  SharedWork b = open("b", changed);
  const auto first = claim(a), second = claim(b);
  ASSERT_TRUE(first && second);
  EXPECT_THAT(names_of(*first), ElementsAre("t0"));
  EXPECT_FALSE(claim(a)) << "of what its command does not name as it is now it runs nothing";
  ASSERT_THAT(names_of(*second), ElementsAre("t1"));
  EXPECT_THAT(second->tasks.front().argv, ElementsAre("false"));
  EXPECT_FALSE(claim(b));
}

TEST_F(SharedWorkTest, WhatAWorkerGivesBackKeepsWhatSucceeded) {
  SharedWork a = open("a", {piece_task("one"), piece_task("later", {"one"})}),
             b = open("b", {piece_task("one"), piece_task("later", {"one"})});
  const auto piece = claim(a);
  ASSERT_TRUE(a.give_back(piece->name, {.succeeded = {"one"}, .failed = {}}));
  const auto taken = claim(b);
  ASSERT_TRUE(taken);
  EXPECT_THAT(names_of(*taken), ElementsAre("later"));
  EXPECT_THAT(taken->tasks.front().after, IsEmpty()) << "nobody has to wait for what succeeded elsewhere";
}

TEST_F(SharedWorkTest, OfASilentWorkerItsPiecesAreTakenWithoutWhatSucceeded) {
  SharedWork a = open("a", piece_tasks(2));
  const auto first = claim(a), second = claim(a);
  ASSERT_TRUE(first && second);
  const std::string own = folder_of_worker(folder_, "a");
  fs::create_directories(own);
  {
    auto journal = Journal::open(own);
    ASSERT_TRUE(journal) << journal.error().what;
    const auto known = (*journal)->register_tasks(first->tasks);
    ASSERT_TRUE(known);
    ASSERT_TRUE((*journal)->begin_run({.start = 1}));
    (*journal)->note_task(known->front().key, TaskState::kSucceeded, "");
    ASSERT_TRUE((*journal)->commit());
  }
  SharedWork b = open("b", piece_tasks(2));
  EXPECT_FALSE(claim(b)) << "a is at work";
  SharedWork c = open("c", piece_tasks(2));
  silence("a");
  const auto other = claim(c);
  ASSERT_TRUE(other);
  EXPECT_THAT(names_of(*other), ElementsAre("t1"));
  EXPECT_EQ(c.progress().ended, 1U) << "what had succeeded needs nobody";
  // It was not dead after all: what it ends now, another has as well.
  ASSERT_TRUE(*c.finish(other->name, {.succeeded = {"t1"}, .failed = {}}));
  const auto late = a.finish(second->name, {.succeeded = {"t1"}, .failed = {}});
  ASSERT_TRUE(late) << late.error().what;
  EXPECT_FALSE(*late);
  EXPECT_TRUE(a.give_back(first->name, {}));
  EXPECT_EQ(c.progress().ended, 2U);
}

TEST_F(SharedWorkTest, OfAWorkerThatIsOverItsPiecesGoBackAtOnce) {
  SharedWork a = open("n1.j7", piece_tasks(1)), b = open("b", piece_tasks(1));
  ASSERT_TRUE(claim(a));
  EXPECT_FALSE(claim(b));
  EXPECT_FALSE(b.somebody_is_silent());
  silence("n1.j7");
  EXPECT_TRUE(b.somebody_is_silent());
  SharedWork::give_back_for(folder_, "n1.j7");
  EXPECT_FALSE(b.somebody_is_silent());
  EXPECT_TRUE(claim(b));
  EXPECT_THAT(workers_now(folder_), SizeIs(1)) << "nobody else is left behind";
}

TEST_F(SharedWorkTest, ARequeuedJobTakesWhatItHadAtOnce) {
  SharedWork before = open("n1.7", piece_tasks(1));
  ASSERT_TRUE(claim(before));
  auto after = SharedWork::open(folder_, {.name = "n2.7.r1", .before = {"n1.7"}, .started_by = ""}, piece_tasks(1));
  ASSERT_TRUE(after);
  EXPECT_TRUE(claim(*after));
}

TEST_F(SharedWorkTest, StopIsForThoseWhoAreThere) {
  SharedWork a = open("a", piece_tasks(1));
  EXPECT_FALSE(a.is_to_stop());
  ASSERT_TRUE(ask_all_to_stop(folder_));
  EXPECT_TRUE(a.is_to_stop());
  EXPECT_TRUE(open("b", piece_tasks(1)).is_to_stop()) << "somebody is still there";
  a.leave();
  fs::remove(folder_ + "/shared/alive/b");
  EXPECT_FALSE(open("c", piece_tasks(1)).is_to_stop());
}

TEST_F(SharedWorkTest, WhatRunsIsWhatTheWorkersOwnCommandSays) {
  SharedWork a = open("a", piece_tasks(2));
  const std::string text = read_file(folder_ + "/shared/round-0/tasks").value();
  EXPECT_THAT(text, Not(HasSubstr("true"))) << "no command and no environment lies in the folder";
  // Somebody adds a piece, and says of another one that it is one of ours.
  ASSERT_TRUE(write_file(folder_ + "/shared/round-0/tasks",
                         text + piece_line({{"theirs", "theirs", "g"}}) + piece_line({{"t0", "other", "g"}})));
  for (const char* number : {"000002", "000003"})
    ASSERT_TRUE(write_file(folder_ + "/shared/round-0/todo/" + number, ""));
  SharedWork b = open("b", piece_tasks(2));
  std::set<std::string> got;
  while (const auto piece = claim(b)) {
    for (const TaskSpec& task : piece->tasks) EXPECT_EQ(task.argv, piece_task(task.name).argv);
    got.insert(names_of(*piece).front());
  }
  EXPECT_THAT(got, ElementsAre("t0", "t1"));
}

TEST_F(SharedWorkTest, WhatComesAfterATaskThatIsUnderWayWaitsForALaterCall) {
  SharedWork a = open("a", {piece_task("one")});
  const auto first = claim(a);
  const std::vector<TaskSpec> grown{piece_task("one"), piece_task("later", {"one"}), piece_task("last", {"later"})};
  SharedWork b = open("b", grown);
  EXPECT_EQ(b.waiting(), 2U);
  EXPECT_FALSE(claim(b));
  ASSERT_TRUE(*a.finish(first->name, {.succeeded = {"one"}, .failed = {}}));
  SharedWork c = open("c", grown);
  EXPECT_EQ(c.waiting(), 0U);
  EXPECT_THAT(names_of(*claim(c)), ElementsAre("later", "last"));
}

TEST_F(SharedWorkTest, WhatIsLeftToOthersIsNotClaimedAgain) {
  SharedWork a = open("a", piece_tasks(1)), b = open("b", piece_tasks(1));
  ASSERT_TRUE(a.leave_to_others(claim(a)->name));
  EXPECT_FALSE(claim(a));
  EXPECT_TRUE(claim(b));
}

TEST_F(SharedWorkTest, ALivingWorkerThatWasTakenForDeadClaimsOn) {
  SharedWork a = open("a", piece_tasks(3));
  ASSERT_TRUE(claim(a));
  SharedWork::give_back_for(folder_, "a");
  EXPECT_FALSE(fs::exists(folder_ + "/shared/claimed/a"));
  EXPECT_TRUE(claim(a));
}

TEST_F(SharedWorkTest, NobodyElseReadsItsFolders) {
  SharedWork a = open("a", piece_tasks(1));
  for (const char* name : {"", "/shared", "/shared/done", "/shared/claimed", "/shared/round-0", "/workers"}) {
    struct stat info {};
    ASSERT_EQ(::stat((folder_ + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077U, 0U) << name;
  }
}

TEST(SharedPieces, AreReadAsTheyWereWrittenAndNothingElseIs) {
  const SharedPiece piece{{"a\nb", "0123", "g"}, {"ü", "4567", ""}};
  EXPECT_EQ(parse_piece(piece_line(piece)), piece);
  for (const char* text : {"", "[]", "[1]", "[[\"a\",\"b\"]]", "[[\"a\",\"b\",3]]", "{}", "[["})
    EXPECT_FALSE(parse_piece(text)) << text;
}

TEST_F(SharedWorkTest, NamesFromOutsideAreNoPaths) {
  for (const char* name : {"", "..", ".a", "a/b", "-a", "a b", "ä"}) EXPECT_FALSE(is_worker_name(name)) << name;
  EXPECT_TRUE(is_worker_name("n1.4711.r1"));
  EXPECT_FALSE(SharedWork::open(folder_, {.name = "../x", .before = {}, .started_by = ""}, piece_tasks(1)));
}

TEST_F(SharedWorkTest, FilesOfOthersInItsFoldersAreNoPieces) {
  SharedWork a = open("a", piece_tasks(1));
  ASSERT_TRUE(write_file(folder_ + "/shared/claimed/a/.0-000000.tmp", "x"));
  EXPECT_THAT(*a.mine(), IsEmpty());
  ASSERT_TRUE(write_file(folder_ + "/shared/round-0/todo/readme", "x"));
  ASSERT_TRUE(write_file(folder_ + "/shared/done/0-999999", "failed 3\n"));
  EXPECT_TRUE(claim(a));
  EXPECT_FALSE(claim(a));
}

}  // namespace
}  // namespace headroom::batch
