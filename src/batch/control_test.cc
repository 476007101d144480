// SPDX-License-Identifier: Apache-2.0
#include "batch/control.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "batch/folder_lock.h"
#include "batch/place.h"

namespace headroom::batch {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct BatchControl : ::testing::Test {
  const std::string root = [] {
    std::string name = (fs::temp_directory_path() / "headroom-control-XXXXXX").string();
    return std::string(::mkdtemp(name.data()));
  }();
  const std::string folder = root + "/" + std::string(150, 'x');  // a socket's address is shorter than this
  std::unique_ptr<Loop> loop = std::move(*Loop::create());
  Place place;
  const Fd& directory = place.directory;

  BatchControl() { place = std::move(*open_place(folder, Trust::kOwn)); }
  ~BatchControl() override {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
};

TEST_F(BatchControl, AnswersLinesWhereverTheFolderIs) {
  std::vector<std::string> asked;
  auto server = ControlServer::open(*loop, directory, [&](std::string_view request) {
    asked.emplace_back(request);
    if (request == "last") loop->stop();
    return fmt::format("you said {}\n", request);
  });
  ASSERT_TRUE(server) << server.error().what;
  std::vector<Result<std::string>> answers;
  std::thread client([&] {
    answers.push_back(ask(folder, "status"));
    answers.push_back(ask(folder, std::string(100'000, 'y')));  // longer than any request is
    answers.push_back(ask(folder, "last"));
  });
  loop->run();
  client.join();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].value_or(""), "you said status\n");
  EXPECT_NE(answers[1].value_or(""), "you said status\n");
  EXPECT_EQ(answers[2].value_or(""), "you said last\n");
  EXPECT_EQ(asked.front(), "status");
  EXPECT_EQ(asked.back(), "last");
}

TEST_F(BatchControl, WithoutABatchNobodyAnswers) {
  const auto nobody = ask(folder, "status");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Errc::kNotFound);
  EXPECT_THAT(nobody.error().what, HasSubstr("no batch is running"));
  EXPECT_FALSE(ask(root + "/nowhere", "status"));
  {
    (void)ControlServer::open(*loop, directory, [](std::string_view) { return ""; });
  }
  EXPECT_FALSE(fs::exists(folder + "/control.sock")) << "the socket goes with its server";
}

TEST_F(BatchControl, AFolderIsLockedOnce) {
  ASSERT_TRUE(lock_place(place));
  note_holder(place, 0, kSecond);
  Place second = std::move(*open_place(folder, Trust::kOwn));
  const auto locked = lock_place(second);
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().code, Errc::kBusy);
  EXPECT_EQ(holder_of(folder).state, Holder::State::kRuns);
  EXPECT_EQ(holder_of(folder).pid, ::getpid());
  place = {};
  EXPECT_TRUE(lock_place(second));
  second = {};
  EXPECT_EQ(holder_of(folder).state, Holder::State::kNobody);
}

TEST_F(BatchControl, ARemovedLockFileLetsNobodyIn) {
  ASSERT_TRUE(lock_place(place));
  fs::remove(folder + "/lock");
  Place second = std::move(*open_place(folder, Trust::kOwn));
  EXPECT_FALSE(lock_place(second));
  EXPECT_EQ(holder_of(folder).state, Holder::State::kRuns);
}

TEST_F(BatchControl, ALockWhoseHolderDiedIsItsGuardians) {
  ASSERT_TRUE(lock_place(place));
  ASSERT_EQ(::pwrite(place.lock.get(), "1 5 77 9", 8, 0), 8);  // process 1 started later than that
  const Holder holder = holder_of(folder);
  EXPECT_EQ(holder.state, Holder::State::kGuardian);
  EXPECT_EQ(holder.guardian, 77);
  EXPECT_EQ(holder.grace, 9);
}

TEST_F(BatchControl, ManyWhoAskAndSayNothingKeepNobodyFromAnAnswer) {
  auto server = ControlServer::open(*loop, directory, [](std::string_view) { return "here\n"; });
  ASSERT_TRUE(server) << server.error().what;
  std::vector<Fd> silent;
  for (int i = 0; i < 40; ++i) {
    silent.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = fmt::format("/proc/self/fd/{}/control.sock", directory.get());
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(::connect(silent.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  Result<std::string> answer = fail(Errc::kIo, "");
  std::thread asking([&] {
    answer = ask(folder, "status");
    loop->post([&] { loop->stop(); });
  });
  loop->run();
  asking.join();
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(*answer, "here\n");
}

TEST_F(BatchControl, WhoListensAndDoesNotAnswerIsNotGone) {
  const Fd deaf(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = fmt::format("/proc/self/fd/{}/control.sock", directory.get());
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(deaf.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(deaf.get(), 1), 0);
  const auto answer = ask(folder, "status");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kBusy);
}

}  // namespace
}  // namespace headroom::batch
