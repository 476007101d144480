// SPDX-License-Identifier: Apache-2.0
#include "batch/identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/fd.h"

namespace headroom::batch {
namespace {

class Identity : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "headroom-identity-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    put("train.py", "print(1)\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void put(const std::string& name, std::string_view text) { ASSERT_TRUE(write_file(folder_ + "/" + name, text)); }

  TaskSpec task(const std::string& lr) const {
    TaskSpec made;
    made.name = "t" + lr;
    made.argv = {"python3", "train.py", lr, "{gpu}", "{slot}"};
    made.parameters = {{"lr", lr}};
    made.inputs = {"train.py"};
    return made;
  }
  std::vector<std::string> identities(std::vector<TaskSpec> tasks) {
    const auto done = set_identities(tasks, folder_, hasher_);
    EXPECT_TRUE(done) << done.error().what;
    std::vector<std::string> all;
    for (const TaskSpec& one : tasks) all.push_back(one.identity);
    return all;
  }

  std::string folder_;
  InputHasher hasher_;
};

TEST_F(Identity, IsOfCommandParametersInputsAndFolder) {
  const std::string base = identities({task("1")})[0];
  EXPECT_EQ(base.size(), 16U);
  EXPECT_EQ(identities({task("1")})[0], base);
  TaskSpec other = task("1");
  other.name = "renamed";
  other.priority = 3;
  other.retry.retries = 7;
  EXPECT_EQ(identities({other})[0], base);
  EXPECT_NE(identities({task("2")})[0], base);
  other = task("1");
  other.argv[0] = "python3.11";
  EXPECT_NE(identities({other})[0], base);
  other = task("1");
  other.parameters[0].second = "1.0";
  EXPECT_NE(identities({other})[0], base);
  put("train.py", "print(2)\n");
  EXPECT_NE(identities({task("1")})[0], base);
  put("train.py", "print(1)\n");
  EXPECT_EQ(identities({task("1")})[0], base);
}

TEST_F(Identity, WordsDoNotRunTogether) {
  TaskSpec one = task("1"), two = task("1");
  one.argv = {"a", "bc"};
  two.argv = {"ab", "c"};
  const auto found = identities({one, two});
  EXPECT_NE(found[0], found[1]);
}

TEST_F(Identity, IsTheSameInEveryVersion) {
  TaskSpec one;
  one.argv = {"true"};
  std::vector<TaskSpec> tasks{one};
  ASSERT_TRUE(set_identities(tasks, "/", hasher_));
  EXPECT_EQ(tasks[0].identity, "1ec571f116dda576");
}

TEST_F(Identity, TheSameTaskTwiceIsTwoTasks) {
  const auto found = identities({task("1"), task("1"), task("1")});
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), 3U);
  EXPECT_EQ(identities({task("1"), task("1")})[1], found[1]);
}

TEST_F(Identity, HowAFolderIsWrittenDoesNotMatter) {
  TaskSpec here = task("1"), also = task("1");
  also.working_directory = "sub/..";
  EXPECT_EQ(identities({here})[0], identities({also})[0]);
  also.working_directory = folder_ + "/./";
  EXPECT_EQ(identities({here})[0], identities({also})[0]);
}

TEST_F(Identity, AnInputThatAnotherTaskMakesNeedNotExist) {
  TaskSpec make = task("1"), use = task("2");
  make.outputs = {"data.npy"};
  use.inputs = {"./data.npy"};
  const auto before = identities({use, make});
  put("data.npy", "made");
  EXPECT_EQ(identities({use, make}), before);
  put("train.py", "other");
  EXPECT_NE(identities({use, make})[0], before[0]);  // its maker changed
  make.outputs.clear();
  std::filesystem::remove(folder_ + "/data.npy");
  use.file = "w.toml";
  use.line = 4;
  std::vector<TaskSpec> tasks{use, make};
  EXPECT_EQ(set_identities(tasks, folder_, hasher_).error().what,
            "w.toml:4: inputs: open " + folder_ + "/data.npy: No such file or directory");
}

TEST_F(Identity, TasksInACircleStillHaveOne) {
  TaskSpec a = task("1"), b = task("2");
  a.inputs = b.outputs = {"b"};
  b.inputs = a.outputs = {"a"};
  for (const std::string& identity : identities({a, b})) EXPECT_EQ(identity.size(), 16U);
}

TEST_F(Identity, InputsAreFiles) {
  EXPECT_EQ(hasher_.hash(folder_).error().code, Errc::kInvalidInput);
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(hasher_.hash(folder_ + "/pipe"));  // and does not wait for a writer
  put("empty", "");
  EXPECT_EQ(*hasher_.hash(folder_ + "/empty"), "xxh128:99aa06d3014798d86001c324468d497f");
}

// A work tree in the folder of the test, which holds train.py.
class Git : public Identity {
 protected:
  void SetUp() override {
    Identity::SetUp();
    if (git("--version") != 0) GTEST_SKIP() << "git is not installed";
    EXPECT_FALSE(git_state(folder_));  // no work tree yet
    ASSERT_EQ(git("init -q"), 0);
  }
  int git(const std::string& what) const {
    const std::string line = "cd '" + folder_ +
                             "' && GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null git -c user.name=a "
                             "-c user.email=a@b.c -c init.defaultBranch=main " +
                             what + " >/dev/null 2>&1";
    return std::system(line.c_str());
  }
  GitState committed() {
    EXPECT_EQ(git("add train.py"), 0);
    EXPECT_EQ(git("commit -q -m a"), 0);
    return git_state(folder_).value_or(GitState{});
  }
};

TEST_F(Git, BeforeTheFirstCommitThereIsNone) {
  EXPECT_EQ(git_state(folder_), (GitState{"", false}));
  ASSERT_EQ(git("add train.py"), 0);
  EXPECT_EQ(git_state(folder_), (GitState{"", true}));
}

TEST_F(Git, ChangesOfTrackedFilesMakeItDirty) {
  const GitState clean = committed();
  EXPECT_EQ(clean.commit.size(), 40U);
  EXPECT_EQ(clean.dirty, false);
  put("untracked", "");
  EXPECT_EQ(git_state(folder_), clean);
  put("train.py", "changed");
  EXPECT_EQ(git_state(folder_), (GitState{clean.commit, true}));
  ASSERT_EQ(git("add train.py"), 0);  // staged
  EXPECT_EQ(git_state(folder_), (GitState{clean.commit, true}));
}

TEST_F(Git, NoProgramOfTheRepositorysOwnIsRun) {
  const GitState clean = committed();
  const std::string trap = "touch " + folder_ + "/sprung; cat";
  ASSERT_EQ(git("config core.fsmonitor '" + trap + "'"), 0);
  ASSERT_EQ(git("config filter.trap.clean '" + trap + "'"), 0);
  ASSERT_EQ(git("config filter.trap.required true"), 0);
  put(".git/info/attributes", "*.py filter=trap\n");
  put("train.py", "changed");
  EXPECT_EQ(git_state(folder_), (GitState{clean.commit, true}));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/sprung"));
}

TEST_F(Git, ARepositoryOfAnotherUserIsNamedAsSuch) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  (void)committed();
  for (const std::string& path : {folder_, folder_ + "/.git"}) ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  const auto state = git_state(folder_);
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->refused);
}

TEST_F(Git, TheCommitIsFoundWhereverItIsKept) {
  const GitState clean = committed();
  std::filesystem::create_directory(folder_ + "/sub");
  EXPECT_EQ(git_state(folder_ + "/sub"), clean);
  ASSERT_EQ(git("pack-refs --all"), 0);
  EXPECT_EQ(git_state(folder_), clean);
  ASSERT_EQ(git("worktree add -q linked"), 0);
  EXPECT_EQ(git_state(folder_ + "/linked"), clean);
  ASSERT_EQ(git("checkout -q --detach"), 0);
  EXPECT_EQ(git_state(folder_), clean);
  EXPECT_FALSE(git_state(folder_ + "/.git"));  // not a work tree
}

// $PATH for one scope.
class ProgramsFrom {
 public:
  explicit ProgramsFrom(const std::string& path) : before_(std::getenv("PATH")) { ::setenv("PATH", path.c_str(), 1); }
  ~ProgramsFrom() { ::setenv("PATH", before_.c_str(), 1); }
  ProgramsFrom(const ProgramsFrom&) = delete;
  ProgramsFrom& operator=(const ProgramsFrom&) = delete;

 private:
  std::string before_;
};

TEST_F(Git, WithoutTheProgramNothingIsKnown) {
  ASSERT_NE(committed().commit, "");
  const ProgramsFrom nowhere(folder_ + "/nowhere");
  EXPECT_FALSE(git_state(folder_));
}

TEST_F(Git, ATreeTooLargeToBeComparedStillHasACommit) {
  const std::string commit(40, 'c');
  std::filesystem::create_directory(folder_ + "/bin");
  put("bin/git", "#!/bin/sh\ncase \"$*\" in *status*) exec sleep 60 ;; *) echo " + commit + " ;; esac\n");
  ASSERT_EQ(::chmod((folder_ + "/bin/git").c_str(), 0755), 0);
  const ProgramsFrom slow(folder_ + "/bin:/usr/bin:/bin");
  EXPECT_EQ(git_state(folder_, 50 * kMillisecond), (GitState{commit, std::nullopt}));
}

}  // namespace
}  // namespace headroom::batch
