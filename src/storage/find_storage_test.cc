// SPDX-License-Identifier: Apache-2.0
#include "storage/find_storage.h"

#include <gmock/gmock.h>

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FindStorage, AWordNamesAFileAsItIsBehindItsOptionOrAsAUrl) {
  EXPECT_THAT(files_in_word("study.db"), ElementsAre("study.db"));
  EXPECT_THAT(files_in_word("--storage=sqlite:///a/study.db"), ::testing::Contains("a/study.db"));
  EXPECT_THAT(files_in_word("sqlite:////tmp/study.db"), ElementsAre("/tmp/study.db"));
  EXPECT_THAT(files_in_word("postgresql://u@host/optuna"), IsEmpty());
  EXPECT_THAT(files_in_word(""), IsEmpty());
}

TEST(FindStorage, OnlyOptunasTablesAndJournalsAreStorages) {
  const std::string header("SQLite format 3\0", 16);
  const std::string padding(4096, '\0');
  EXPECT_TRUE(begins_as_storage(header + padding +
                                "CREATE TABLE study_directions (x)CREATE TABLE trial_intermediate_values (x)"));
  EXPECT_FALSE(begins_as_storage(header + padding + "CREATE TABLE other (x)"));
  EXPECT_FALSE(begins_as_storage("CREATE TABLE study_directions, CREATE TABLE trial_intermediate_values"));
  EXPECT_TRUE(begins_as_storage("{\"op_code\": 0, \"worker_id\": \"w\", \"study_name\": \"s\"}\n"));
  EXPECT_FALSE(begins_as_storage(""));
  EXPECT_EQ(find_storage({"/nonexistent", "/dev/null", "/proc/self/exe"}), std::nullopt);
}

}  // namespace
}  // namespace headroom
