// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_tables.h"

#include <chrono>
#include <limits>
#include <thread>

#include "base/strings.h"
#include "base/visible.h"
#include "storage/rdb_schema.h"

namespace headroom {

namespace {

class Tables {
 public:
  Tables(const StorageRequest& request, Database& database, Nanos hold, Pauses pauses)
      : request_(request), database_(database), hold_(hold), pauses_(pauses), assembler_(request.study) {}

  Result<StorageContent> read() {
    HR_TRYV(check());
    HR_TRYV(read_studies());
    HR_TRYV(read_trials());
    HR_TRYV(read_parameters());
    HR_TRYV(read_values());
    HR_TRYV(read_reports());
    HR_TRYV(read_attributes());
    HR_TRYV(read_heartbeats());
    auto content = finished_content(request_, assembler_,
                                    fmt::format("SQLite, schema {}, Optuna {}", visible(schema_), visible(library_)));
    if (!content) return content;
    for (Study& study : content->studies) {
      study.storage = "sqlite";
      study.schema = schema_;
      study.library_version = library_;
    }
    return content;
  }

 private:
  // What the first column of a query with one row has; "" where there is none.
  Result<std::string> text(std::string_view sql) {
    HR_TRY(Statement statement, database_.prepare(sql));
    HR_TRY(const bool row, statement.step());
    return std::string(row ? statement.bytes(0) : std::string_view());
  }

  Result<bool> has_table(std::string_view name) {
    HR_TRY(Statement found, database_.prepare("SELECT 1 FROM sqlite_schema WHERE type='table' AND name=?1"));
    found.bind(1, name);
    return found.step();
  }

  // The column, or an empty text where a table of an older schema has none.
  Result<std::string> column(std::string_view table, std::string_view name) {
    HR_TRY(Statement found, database_.prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name=?2"));
    found.bind(1, table);
    found.bind(2, name);
    HR_TRY(const bool there, found.step());
    return std::string(there ? name : "''");
  }

  Result<void> check() {
    for (const std::string_view name : {"version_info", "studies", "trials"}) {
      HR_TRY(const bool there, has_table(name));
      if (!there) return not_optuna();
    }
    HR_TRYV(database_.check_stored_tables(kOptunaTables));
    HR_TRYV(database_.check_stored_tables(std::array{kHeartbeatTable}));
    HR_TRY(const bool versions, has_table("alembic_version"));
    if (versions) {
      HR_TRY(schema_, text("SELECT version_num FROM alembic_version"));
    }
    HR_TRYV(check_schema(schema_));
    for (const std::string_view name : kOptunaTables) {
      HR_TRY(const bool there, has_table(name));
      if (!there) return fail(Errc::kCorrupt, fmt::format("Optuna's table {} is missing in it", name));
    }
    HR_TRY(library_, text("SELECT library_version FROM version_info"));
    return {};
  }

  Result<void> not_optuna() {
    constexpr std::string_view kFirst =
        "SELECT group_concat(name, ', ') FROM (SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name LIMIT "
        "6)";
    constexpr std::string_view kTrace =
        "SELECT name FROM sqlite_schema WHERE name LIKE 'CUPTI%' OR name IN ('NVTX_EVENTS', "
        "'TARGET_INFO_SESSION_START_TIME') LIMIT 1";
    HR_TRY(const std::string trace, text(kTrace));
    if (!trace.empty())
      return fail(Errc::kInvalidInput, "an export of Nsight Systems, no storage of Optuna",
                  fmt::format("headroom why {}", typed_word(request_.name)));
    HR_TRY(const std::string tables, text(kFirst));
    return fail(Errc::kInvalidInput,
                tables.empty() ? "an SQLite database without a table"
                               : fmt::format("an SQLite database with other tables than Optuna's: {}", visible(tables)),
                "name the file that optuna.create_study(storage=…) was given");
  }

  // Calls `row` for each row of a table, whose columns count from 1. A lock is held from the first step to the reset.
  template <class Row>
  Result<void> each_row(std::string_view table, const std::string& columns, Row row) {
    HR_TRY(Statement rows,
           database_.prepare(fmt::format("SELECT rowid, {} FROM {} WHERE rowid > ?1 ORDER BY rowid", columns, table)));
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (bool more = true; more;) {
      rows.bind(1, last);
      Nanos begin = 0, now = 0;
      do {
        HR_TRY(more, rows.step());
        now = monotonic_now();
        if (begin == 0) begin = now;
        if (!more) break;
        const std::int64_t id = rows.integer(0);
        if (id <= last) return fail(Errc::kCorrupt, fmt::format("the rows of {} are not in order", table));
        last = id;
        row(rows);
      } while (now - begin < hold_);
      rows.reset();
      if (more && pauses_ == Pauses::kYes) std::this_thread::sleep_for(std::chrono::nanoseconds(now - begin));
    }
    return {};
  }

  static std::optional<double> number(const Statement& row, int column) {
    return row.is_number(column) ? std::optional(row.real(column)) : std::nullopt;
  }

  // Absent where it is NULL; a text that is no time makes the row one that was left out.
  std::optional<Nanos> time(const Statement& row, int column) {
    if (row.is_null(column)) return std::nullopt;
    const auto at = stored_time(row.bytes(column));
    if (!at) assembler_.count_left_out();
    return at;
  }

  Result<void> read_studies() {
    HR_TRYV(each_row("studies", "study_id, study_name",
                     [this](const Statement& row) { assembler_.add_study(row.integer(1), row.bytes(2)); }));
    HR_TRYV(each_row("study_directions", "study_id, objective, direction", [this](const Statement& row) {
      assembler_.add_direction(row.integer(1), row.integer(2), direction_of(row.bytes(3)));
    }));
    return each_row("study_system_attributes",
                    fmt::format("study_id, key, CASE WHEN {} THEN value_json END", kReadKeys),
                    [this](const Statement& row) {
                      if (StudyAssembler::is_read(row.bytes(2)))
                        assembler_.add_study_attribute(row.integer(1), row.bytes(2), parse_python_json(row.bytes(3)));
                    });
  }

  Result<void> read_trials() {
    return each_row("trials", "trial_id, study_id, number, state, datetime_start, datetime_complete",
                    [this](const Statement& row) {
                      const auto state = trial_state_of(row.bytes(4));
                      if (!state) return assembler_.count_left_out();
                      TrialRow trial{.id = row.integer(1), .study = row.integer(2), .state = *state};
                      if (!row.is_null(3)) trial.number = row.integer(3);
                      trial.start = time(row, 5);
                      trial.complete = time(row, 6);
                      assembler_.add_trial(trial);
                    });
  }

  Result<void> read_parameters() {
    return each_row("trial_params", "trial_id, param_name, param_value, distribution_json",
                    [this](const Statement& row) {
                      assembler_.add_parameter(row.integer(1), row.bytes(2), number(row, 3), row.bytes(4));
                    });
  }

  Result<void> read_values() {
    HR_TRY(const std::string type, column("trial_values", "value_type"));
    return each_row("trial_values", fmt::format("trial_id, objective, value, {}", type), [this](const Statement& row) {
      assembler_.add_value(row.integer(1), row.integer(2), stored_value(number(row, 3), row.bytes(4)));
    });
  }

  Result<void> read_reports() {
    HR_TRY(const std::string type, column("trial_intermediate_values", "intermediate_value_type"));
    return each_row("trial_intermediate_values", fmt::format("trial_id, step, intermediate_value, {}", type),
                    [this](const Statement& row) {
                      assembler_.add_report(row.integer(1), row.integer(2), stored_value(number(row, 3), row.bytes(4)));
                    });
  }

  Result<void> read_attributes() {
    return each_row("trial_system_attributes",
                    fmt::format("trial_id, key, CASE WHEN {} THEN value_json END", kReadKeys),
                    [this](const Statement& row) {
                      if (StudyAssembler::is_read(row.bytes(2)))
                        assembler_.add_attribute(row.integer(1), row.bytes(2), parse_python_json(row.bytes(3)));
                    });
  }

  Result<void> read_heartbeats() {
    HR_TRY(const bool there, has_table(kHeartbeatTable));
    if (!there) return {};
    return each_row(kHeartbeatTable, "trial_id, heartbeat", [this](const Statement& row) {
      assembler_.add_heartbeat(row.integer(1), stored_time(row.bytes(2)));
    });
  }

  const StorageRequest& request_;
  Database& database_;
  Nanos hold_;
  Pauses pauses_;
  StudyAssembler assembler_;
  std::string schema_, library_;
};

}  // namespace

Result<StorageContent> read_sqlite_tables(const StorageRequest& request, Database& database, Nanos hold,
                                          Pauses pauses) {
  return Tables(request, database, hold, pauses).read();
}

}  // namespace headroom
