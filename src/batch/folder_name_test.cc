// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fnv.h"
#include "batch/folder.h"
#include "batch/journal.h"
#include "batch/read_tasks.h"

namespace headroom::batch {
namespace {

struct FolderName : ::testing::Test {
  FolderName() {
    std::string name = (std::filesystem::temp_directory_path() / "headroom-folder-XXXXXX").string();
    home = std::filesystem::current_path();
    std::filesystem::current_path(::mkdtemp(name.data()));
  }
  ~FolderName() override {
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(home);
    std::error_code ignored;
    std::filesystem::remove_all(here, ignored);
  }
  static tasks::TaskSet set_of(const std::vector<std::string>& words) {
    Request request;
    request.after_dashes = words;
    return read_tasks(request).value();
  }
  static std::string of(const std::vector<std::string>& words) {
    Request request;
    request.after_dashes = words;
    return folder_of(request, set_of(words));
  }
  std::filesystem::path home;
};

TEST_F(FolderName, BelongsToTheCommandWithoutItsValues) {
  const std::string four = of({"train", "{}", ":::", "1", "2", "3", "4"});
  EXPECT_EQ(four, of({"train", "{}", ":::", "1", "2", "3", "4", "5"}));
  EXPECT_EQ(four, of({"train", "{}", ":::", "9"}));
  EXPECT_NE(four, of({"train", "-v", "{}", ":::", "1"}));
  EXPECT_NE(four, of({"train {}", ":::", "1"})) << "a shell line";
  EXPECT_NE(of({"train", "{1}", ":::", "1"}), of({"train", "{1}", ":::", "1", ":::", "2"}));
  EXPECT_NE(of({"train", "a"}), of({"train", "b"})) << "no values: the command is all there is";
}

TEST_F(FolderName, AFolderOfTheVeryTasksGoesOnUntilThereIsAnother) {
  const std::vector<std::string> words{"train", "{}", ":::", "1", "2"};
  std::uint64_t hash = kFnvBasis;  // as it was named before
  for (const TaskSpec& task : set_of(words).tasks) hash = fnv1a(task.identity, hash);
  const std::string older =
      fmt::format("{}/headroom-{:08x}.batch", std::filesystem::current_path().string(), hash >> 32);
  const std::string newer = of(words);
  ASSERT_NE(older, newer);
  std::filesystem::create_directories(older);
  std::ofstream(journal_path(older)) << "x";
  EXPECT_EQ(of(words), older);
  EXPECT_EQ(of({"train", "{}", ":::", "1", "2", "3"}), newer);
  std::filesystem::create_directories(newer);
  std::ofstream(journal_path(newer)) << "x";
  EXPECT_EQ(of(words), newer);
}

}  // namespace
}  // namespace headroom::batch
