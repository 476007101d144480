// SPDX-License-Identifier: Apache-2.0
#include "bench/row_tables.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>
#include <memory>

namespace headroom::bench {

namespace {

constexpr std::size_t kMetrics = kSyntheticMetrics.size();
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

[[noreturn]] void give_up(sqlite3* db, std::string_view what) {
  fmt::print(stderr, "bench_store: {}: {}\n", what, sqlite3_errmsg(db));
  std::exit(1);
}

Statement prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) give_up(db, sql);
  return {statement, &sqlite3_finalize};
}

void insert(sqlite3* db, const Statement& statement) {
  if (sqlite3_step(statement.get()) != SQLITE_DONE) give_up(db, "insert");
  sqlite3_reset(statement.get());
}

std::string for_each_metric(std::string_view before, std::string_view after) {
  std::string list;
  for (std::size_t i = 0; i < kMetrics; ++i) list += fmt::format("{}{}{}", before, i, after);
  return list;
}

std::string repeated(std::string_view what) {
  std::string list;
  for (std::size_t i = 0; i < kMetrics; ++i) list += what;
  return list;
}

}  // namespace

RowTable::RowTable(const std::string& path, Layout layout, const SyntheticBox& box) : layout_(layout) {
  if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) give_up(db_, path);
  exec("BEGIN");
  if (layout == Layout::kRowPerInstant)
    fill_rows_per_instant(box);
  else
    fill_rows_per_value(box);
  exec("COMMIT");
}

RowTable::~RowTable() { sqlite3_close(db_); }

void RowTable::exec(const std::string& sql) const {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) give_up(db_, sql);
}

void RowTable::fill_rows_per_instant(const SyntheticBox& box) const {
  exec("CREATE TABLE sample(gpu INTEGER, t INTEGER" + for_each_metric(", m", "") +
       ", PRIMARY KEY(gpu, t)) WITHOUT ROWID");
  const Statement statement = prepare(db_, "INSERT INTO sample VALUES(?, ?" + repeated(", ?") + ")");
  for (std::size_t gpu = 0; gpu < box.size(); ++gpu) {
    sqlite3_bind_int64(statement.get(), 1, static_cast<sqlite3_int64>(gpu));
    for (const SyntheticRow& row : box[gpu]) {
      sqlite3_bind_int64(statement.get(), 2, row.at_ns);
      for (std::size_t i = 0; i < kMetrics; ++i)
        sqlite3_bind_int64(statement.get(), static_cast<int>(i) + 3, row.values[i]);
      insert(db_, statement);
    }
  }
}

void RowTable::fill_rows_per_value(const SyntheticBox& box) const {
  exec("CREATE TABLE sample(gpu INTEGER, metric INTEGER, t INTEGER, value, PRIMARY KEY(gpu, metric, t)) WITHOUT ROWID");
  const Statement statement = prepare(db_, "INSERT INTO sample VALUES(?, ?, ?, ?)");
  for (std::size_t gpu = 0; gpu < box.size(); ++gpu) {
    sqlite3_bind_int64(statement.get(), 1, static_cast<sqlite3_int64>(gpu));
    for (std::size_t metric = 0; metric < kMetrics; ++metric) {
      sqlite3_bind_int64(statement.get(), 2, static_cast<sqlite3_int64>(metric));
      for (const SyntheticRow& row : box[gpu]) {
        sqlite3_bind_int64(statement.get(), 3, row.at_ns);
        sqlite3_bind_int64(statement.get(), 4, row.values[metric]);
        insert(db_, statement);
      }
    }
  }
}

std::vector<double> RowTable::means() const {
  const bool wide = layout_ == Layout::kRowPerInstant;
  const Statement query =
      prepare(db_, wide ? "SELECT gpu" + for_each_metric(", avg(m", ")") + " FROM sample GROUP BY gpu"
                        : "SELECT gpu, metric, avg(value) FROM sample GROUP BY gpu, metric");
  std::vector<double> means;
  int code = 0;
  while ((code = sqlite3_step(query.get())) == SQLITE_ROW)
    for (int i = wide ? 1 : 2; i < sqlite3_column_count(query.get()); ++i)
      means.push_back(sqlite3_column_double(query.get(), i));
  if (code != SQLITE_DONE) give_up(db_, "SELECT avg");
  return means;
}

}  // namespace headroom::bench
