// SPDX-License-Identifier: Apache-2.0
#include "batch/control.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

namespace headroom::batch {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

struct BatchControl : testing::Test {
  const std::string root = [] {
    std::string name = (fs::temp_directory_path() / "headroom-control-XXXXXX").string();
    return std::string(::mkdtemp(name.data()));
  }();
  const std::string folder = root + "/" + std::string(150, 'x');  // a socket's address is shorter than this
  std::unique_ptr<Loop> loop = std::move(*Loop::create());

  BatchControl() { fs::create_directories(folder); }
  ~BatchControl() override {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
};

TEST_F(BatchControl, AnswersLinesWhereverTheFolderIs) {
  std::vector<std::string> asked;
  auto server = ControlServer::open(*loop, folder, [&](std::string_view request) {
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
    (void)ControlServer::open(*loop, folder, [](std::string_view) { return ""; });
  }
  EXPECT_FALSE(fs::exists(folder + "/control.sock")) << "the socket goes with its server";
}

TEST_F(BatchControl, AFolderIsLockedOnce) {
  auto first = lock_folder(folder);
  ASSERT_TRUE(first);
  const auto second = lock_folder(folder);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kBusy);
  first->reset();
  EXPECT_TRUE(lock_folder(folder));
}

}  // namespace
}  // namespace headroom::batch
