// SPDX-License-Identifier: Apache-2.0
#include "live/hook.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace headroom {
namespace {

class Hook : public testing::Test {
 protected:
  Hook() { std::filesystem::create_directory(folder_); }
  ~Hook() override {
    std::filesystem::remove_all(folder_);
    signals_.release();
  }
  HookEnd run(const std::string& command, std::string_view document = "{}", Nanos patience = 60 * kSecond) {
    return run_hook(command, document, boottime_now() + patience, signals_);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  // The process whose number a hook wrote has ended.
  [[nodiscard]] bool is_gone(const std::string& name) const {
    const auto pid = parse_number<pid_t>(std::string_view(read(name)).substr(0, read(name).find('\n')));
    if (!pid) return false;
    for (int i = 0; i < 500; ++i, ::usleep(10'000)) {
      ::waitpid(*pid, nullptr, WNOHANG);  // where this process adopts orphans
      std::ifstream stat("/proc/" + std::to_string(*pid) + "/stat");
      std::string number, name_of, state;
      if (!(stat >> number >> name_of >> state) || state == "Z") return true;
    }
    return false;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("hook_test." + std::to_string(::getpid()));
  Signals signals_ = Signals::block({SIGINT, SIGTERM, SIGHUP, SIGQUIT}).value();
};

TEST_F(Hook, IsToldTheDocument) {
  EXPECT_EQ(run("cat > " + path("told"), R"({"a":1})").trouble, "");
  EXPECT_EQ(read("told"), R"({"a":1})");
}

TEST_F(Hook, NeedNotReadALargeDocument) { EXPECT_EQ(run("exit 0", std::string(8 << 20, 'x')).trouble, ""); }

TEST_F(Hook, IsToldALargeDocumentWhole) {
  EXPECT_EQ(run("wc -c > " + path("told"), std::string(8 << 20, 'x')).trouble, "");
  EXPECT_EQ(read("told"), std::to_string(8 << 20) + "\n");
}

TEST_F(Hook, ThatFailsSaysHow) {
  EXPECT_EQ(run("exit 3").trouble, "ended with 3");
  EXPECT_EQ(run("kill -9 $$").trouble, "died of signal 9");
  EXPECT_EQ(run("no-such-command-at-all 2>/dev/null").trouble, "ended with 127");
  EXPECT_FALSE(run("exit 3").out_of_time);
}

TEST_F(Hook, ThatHangsIsKilledWithWhatItStarted) {
  const HookEnd end = run("sleep 600 & echo $! > " + path("pid") + "; wait", "{}", 300 * kMillisecond);
  EXPECT_EQ(end.trouble, "took too long and was killed");
  EXPECT_TRUE(end.out_of_time);
  EXPECT_TRUE(is_gone("pid"));
}

TEST_F(Hook, IsKilledByASignalToThisProcess) {
  // The signal comes from the hook itself: it runs by then.
  const HookEnd end = run("echo $$ > " + path("pid") + "; kill -INT " + std::to_string(::getpid()) + "; sleep 600");
  EXPECT_EQ(end.trouble, "was killed, as a signal came");
  EXPECT_TRUE(end.by_signal);
  EXPECT_TRUE(is_gone("pid"));
}

TEST_F(Hook, LeavesWhatItPutInTheBackground) {
  EXPECT_EQ(run("(sleep 0.2; echo late > " + path("late") + ") >/dev/null 2>&1 &").trouble, "");
  for (int i = 0; i < 500 && read("late").empty(); ++i) ::usleep(10'000);
  EXPECT_EQ(read("late"), "late\n");
}

TEST_F(Hook, HasNoSignalBlocked) {
  EXPECT_EQ(run("grep SigBlk /proc/self/status > " + path("mask")).trouble, "");
  EXPECT_EQ(read("mask"), "SigBlk:\t0000000000000000\n");
}

}  // namespace
}  // namespace headroom
