// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_storage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "storage/testing.h"

namespace headroom {
namespace {

const std::string kFloat =
    R"({"name": "FloatDistribution", "attributes": {"low": 0, "high": 1, "step": null, "log": false}})";

class SqliteStorage : public ::testing::Test {
 protected:
  SqliteStorage() { run("PRAGMA synchronous=OFF"); }

  void run(const std::string& sql) {
    const auto done = database_.execute(sql.c_str());
    ASSERT_TRUE(done) << done.error().what << ": " << sql;
  }
  [[nodiscard]] Result<StorageContent> content(const SqliteReading& reading = {}) const {
    return read_sqlite({.name = path_}, path_, "", reading);
  }
  [[nodiscard]] Study study(const SqliteReading& reading = {}) const {
    const auto all = content(reading);
    EXPECT_TRUE(all) << all.error().what;
    if (!all || all->studies.empty()) return {};
    testing::check_study(all->studies[0]);
    return all->studies[0];
  }

  testing::Folder folder_;
  std::string path_ = folder_.file("study.db");
  Database database_ = Database::open(path_, Access::kReadWrite).value();
};

TEST_F(SqliteStorage, APieceOfOneRowAtATimeReadsTheSame) {
  run(testing::tables_sql());
  run("BEGIN");
  for (int trial = 1; trial <= 20; ++trial) {
    run(
        fmt::format("INSERT INTO trials VALUES ({}, {}, 1, 'COMPLETE', '2026-11-20 10:40:34.726566',"
                    " '2026-11-20 10:40:44')",
                    trial, trial - 1));
    run(fmt::format("INSERT INTO trial_params VALUES (NULL, {}, 'größe', 0.5, '{}')", trial, kFloat));
    for (int step = 3; step >= 0; --step)
      run(fmt::format("INSERT INTO trial_intermediate_values VALUES (NULL, {}, {}, {}, 'FINITE')", trial, step, step));
  }
  run("COMMIT");
  const Study whole = study(), pieces = study({.copied_whole = 0, .hold = 0});
  EXPECT_EQ(whole, pieces);
  ASSERT_EQ(whole.trials.size(), 20U);
  EXPECT_EQ(whole.reports.size(), 80U);
  EXPECT_EQ(whole.trials[0].complete.value() - whole.trials[0].start.value(), 9'273'434'000);
  EXPECT_EQ(whole.spaces.size(), 1U);
}

TEST_F(SqliteStorage, ValuesAreReadByTheirType) {
  run(testing::tables_sql());
  run("INSERT INTO study_directions VALUES (2, 'MAXIMIZE', 1, 1); INSERT INTO trials VALUES (1, 0, 1, 'PRUNED', NULL, "
      "NULL);"
      "INSERT INTO trial_values VALUES (1, 1, 1, NULL, 'INF_NEG'), (2, 1, 0, 1e308, 'FINITE');"
      "INSERT INTO trial_intermediate_values VALUES (1, 1, 0, NULL, 'NAN'), (2, 1, 1, NULL, 'INF_POS'), (3, 1, 2, 2, "
      "'FINITE');");
  const Study read = study();
  EXPECT_EQ(read.trials[0].values, (std::vector<double>{1e308, -std::numeric_limits<double>::infinity()}));
  EXPECT_TRUE(std::isnan(read.reports[0].value));
  EXPECT_EQ(read.reports[1].value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(read.reports[2], (StepReport{2, 2}));
  EXPECT_EQ(read.directions, (std::vector{Direction::kMinimize, Direction::kMaximize}));
}

TEST_F(SqliteStorage, OlderSchemasHaveNoTypes) {
  run(testing::tables_sql("v2.6.0.a", false));
  run("INSERT INTO trials VALUES (1, 0, 1, 'COMPLETE', NULL, NULL); INSERT INTO trial_values VALUES (1, 1, 0, 9e999);"
      "INSERT INTO trial_intermediate_values VALUES (1, 1, 0, NULL), (2, 1, 1, 0.5);"
      R"(INSERT INTO trial_params VALUES (1, 1, 'q', 0.5, '{"name": "DiscreteUniformDistribution", "attributes": {"low": 0, "high": 1, "q": 0.25}}');)");
  const Study read = study();
  EXPECT_EQ(read.schema, "v2.6.0.a");
  EXPECT_TRUE(std::isinf(read.trials[0].values.at(0)));
  EXPECT_TRUE(std::isnan(read.reports[0].value));
  EXPECT_EQ(read.spaces.at(0).step, 0.25);
  EXPECT_EQ(read.left_out, 0);
}

TEST_F(SqliteStorage, SchemasBeforeAndAfterAreRefusedWithWhatToDo) {
  run(testing::tables_sql("v2.4.0.a", false));
  EXPECT_EQ(content().error().code, Errc::kUnsupported);
  EXPECT_NE(content().error().hint.find("optuna storage upgrade"), std::string::npos);
  run("UPDATE alembic_version SET version_num='v9.0.0.a'");
  EXPECT_EQ(content().error().code, Errc::kUnsupported);
  EXPECT_NE(content().error().what.find("v9.0.0.a"), std::string::npos);
  run("DROP TABLE alembic_version");
  EXPECT_NE(content().error().what.find("being created just now, or older"), std::string::npos);
  EXPECT_EQ(content().error().hint.find("try again"), 0U);
}

TEST_F(SqliteStorage, RowsThatMakeNoSenseAreCountedAndLeftOut) {
  run(testing::tables_sql());
  run("INSERT INTO trials VALUES (1, 0, 1, 'COMPLETE', 'yesterday', NULL), (2, -1, 1, 'FAIL', NULL, NULL),"
      " (3, 2, 7, 'FAIL', NULL, NULL), (4, 3, 1, 'ASLEEP', NULL, NULL), (9, 4, 1, 'FAIL', NULL, NULL);"
      "INSERT INTO trial_values VALUES (1, 1, 5, 1, 'FINITE'), (2, 1, 0, NULL, 'FINITE'), (3, 1, 0, 1, 'GREEN');"
      "INSERT INTO trial_intermediate_values VALUES (1, 1, -1, 1, 'FINITE'), (2, 5, 0, 1, 'FINITE'), (3, 1, 0, 'x', "
      "'FINITE');"
      "INSERT INTO trial_params VALUES (1, 1, 'x', 0.5, '{}');");
  run(R"(INSERT INTO trial_params VALUES (2, 1, 'c', 2, '{"name": "CategoricalDistribution", "attributes": {"choices": [1, 2]}}'))");
  run("INSERT INTO trial_system_attributes VALUES (1, 1, 'completed_rung_-1', '1'), (2, 1, 'constraints', '{}'),"
      " (3, 1, 'failed_trial', '1e300')");
  const Study read = study();
  EXPECT_EQ(read.trials.size(), 2U);
  EXPECT_TRUE(read.reports.empty() && read.parameters.empty() && read.trials[0].values.empty());
  // Trials: a time, a number and a state. Trial 3 is of a study made since. Then 3 values, 3 reports, 2 parameters, 3
  // attributes.
  EXPECT_EQ(read.left_out, 14);
}

TEST_F(SqliteStorage, WhatCameAfterTheTrialsWereReadIsNotCounted) {
  run(testing::tables_sql());
  run("INSERT INTO trials VALUES (1, 0, 1, 'RUNNING', NULL, NULL);"
      "INSERT INTO trial_intermediate_values VALUES (1, 2, 0, 1, 'FINITE'); INSERT INTO trial_values VALUES (1, 1, 0, "
      "3, 'FINITE')");
  const Study read = study();
  EXPECT_TRUE(read.reports.empty());
  EXPECT_TRUE(read.trials[0].values.empty());  // it has ended since
  EXPECT_EQ(read.left_out, 0);
}

TEST_F(SqliteStorage, BothFormsOfConstraintsAreRead) {
  run(testing::tables_sql());
  run("INSERT INTO trials VALUES (1, 0, 1, 'COMPLETE', NULL, NULL), (2, 1, 1, 'COMPLETE', NULL, NULL);"
      "INSERT INTO trial_system_attributes VALUES (1, 1, 'constraints', '[0.5, NaN]'), (2, 2, 'constraints:memory', "
      "'2.0'),"
      " (3, 2, 'constraints:a', '-Infinity')");
  const Study read = study();
  EXPECT_EQ(read.trials[0].constraints.at(0), 0.5);
  EXPECT_TRUE(std::isnan(read.trials[0].constraints.at(1)));
  EXPECT_EQ(read.trials[1].constraints, (std::vector<double>{-std::numeric_limits<double>::infinity(), 2}));
}

TEST_F(SqliteStorage, AViewIsNotRead) {
  run(testing::tables_sql());
  run("ALTER TABLE trial_values RENAME TO other; CREATE VIEW trial_values AS SELECT * FROM other");
  EXPECT_EQ(content().error().code, Errc::kCorrupt);
}

TEST_F(SqliteStorage, ATableThatIsMissingIsSaid) {
  run(testing::tables_sql());
  run("DROP TABLE trial_params");
  EXPECT_EQ(content().error().code, Errc::kCorrupt);
}

TEST_F(SqliteStorage, AWriterThatDoesNotLetGoIsSaid) {
  run(testing::tables_sql());
  run("BEGIN EXCLUSIVE");
  const auto busy = content({.patience = 20 * kMillisecond});
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Errc::kBusy);
  EXPECT_FALSE(busy.error().hint.empty());
  run("COMMIT");
  EXPECT_TRUE(content());
}

TEST_F(SqliteStorage, ALogIsFoundThroughALink) {
  run("PRAGMA journal_mode=WAL");
  run(testing::tables_sql());
  run("PRAGMA wal_checkpoint");
  run("UPDATE studies SET study_name='in the log'");
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const std::string link = folder_.file("link.db");
  std::filesystem::create_symlink(path_, link);
  for (const std::string& name : {path_, link}) {
    const auto read = read_storage({.name = name});
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->studies.at(0).name, "in the log");
  }
}

TEST_F(SqliteStorage, APathLikeAUriIsAPath) {
  run(testing::tables_sql());
  const std::string odd = folder_.file("file:a?mode=rw%20#.db");
  std::filesystem::copy(path_, odd);
  EXPECT_TRUE(read_storage({.name = odd}));
  EXPECT_TRUE(read_storage({.name = "sqlite:///" + path_ + "?timeout=5"}));
}

}  // namespace
}  // namespace headroom
