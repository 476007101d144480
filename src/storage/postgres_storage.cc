// SPDX-License-Identifier: Apache-2.0
#include "storage/postgres_storage.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/visible.h"
#include "storage/postgres_client.h"
#include "storage/rdb_schema.h"

namespace headroom {

namespace {

Errc errc_of_sqlstate(std::string_view state) {
  if (state == "42501") return Errc::kNoPermission;                 // insufficient_privilege
  if (state == "55P03") return Errc::kBusy;                         // lock_not_available
  if (state == "42P01" || state == "42703") return Errc::kCorrupt;  // undefined_table, undefined_column
  return Errc::kIo;
}

// libpq explains itself in several lines.
std::string one_line(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) lines.push_back(visible(trim(line)));
  return join(lines, " ");
}

// One result; its texts live as long as it does.
class Rows {
 public:
  Rows(const Libpq& libpq, pq::Answer* answer) : libpq_(&libpq), answer_(answer, libpq.clear) {}

  [[nodiscard]] int count() const { return libpq_->rows(answer_.get()); }
  [[nodiscard]] bool ok() const {
    const int status = answer_ ? libpq_->answer_status(answer_.get()) : -1;
    return status == pq::kCommandOk || status == pq::kTuplesOk;
  }
  [[nodiscard]] Error error() const {
    if (!answer_) return {Errc::kIo, "libpq has no memory", ""};
    const char* const state = libpq_->answer_field(answer_.get(), pq::kSqlstate);
    const std::string_view text = libpq_->answer_error(answer_.get());
    return {errc_of_sqlstate(state == nullptr ? "" : state), one_line(text), ""};
  }
  [[nodiscard]] std::optional<std::string_view> text(int row, int column) const {
    if (libpq_->is_null(answer_.get(), row, column) != 0) return std::nullopt;
    return std::string_view(libpq_->value(answer_.get(), row, column),
                            static_cast<std::size_t>(libpq_->length(answer_.get(), row, column)));
  }
  template <class T>
  [[nodiscard]] std::optional<T> number(int row, int column) const {
    return parse_number<T>(text(row, column).value_or(""));
  }

 private:
  const Libpq* libpq_;
  std::unique_ptr<pq::Answer, void (*)(pq::Answer*)> answer_;
};

class Server {
 public:
  static Result<Server> connect(const Libpq& libpq, const PostgresUrl& url) {
    // What stands before "dbname" is a default, which the URL may change.
    constexpr const char* kKeywords[] = {"connect_timeout", "fallback_application_name", "dbname", "client_encoding",
                                         nullptr};
    const char* const values[] = {"10", "headroom", url.connect.c_str(), "UTF8", nullptr};
    Server server(libpq, libpq.connect(kKeywords, values, 1));
    if (!server.connection_) return fail(Errc::kIo, "libpq has no memory");
    if (libpq.status(server.connection_.get()) != pq::kConnectionOk)
      return fail(Errc::kNotFound, one_line(without_password(std::string(server.words()), url)),
                  "is the server up, and does psql connect with the same URL, without the +driver? Passwords can come "
                  "from PGPASSWORD or ~/.pgpass");
    libpq.on_notice(
        server.connection_.get(), [](void*, const char*) {}, nullptr);
    return server;
  }

  Result<Rows> query(const std::string& sql) {
    Rows rows(*libpq_, libpq_->exec(connection_.get(), sql.c_str()));
    if (!rows.ok()) return tl::unexpected(rows.error());
    return rows;
  }

  Result<std::string> text(const std::string& sql) {
    HR_TRY(const Rows rows, query(sql));
    return std::string(rows.count() > 0 ? rows.text(0, 0).value_or("") : "");
  }

  // Calls `row(rows, i)` for each row, some thousand of which are here at a time.
  template <class Row>
  Result<void> each_row(const std::string& sql, Row row) {
    HR_TRYV(query("DECLARE headroom NO SCROLL CURSOR FOR " + sql));
    for (;;) {
      HR_TRY(const Rows rows, query("FETCH 10000 FROM headroom"));
      if (rows.count() == 0) break;
      for (int i = 0; i < rows.count(); ++i) row(rows, i);
    }
    HR_TRYV(query("CLOSE headroom"));
    return {};
  }

 private:
  Server(const Libpq& libpq, pq::Connection* connection) : libpq_(&libpq), connection_(connection, libpq.finish) {}
  [[nodiscard]] std::string_view words() const { return libpq_->error(connection_.get()); }

  const Libpq* libpq_;
  std::unique_ptr<pq::Connection, void (*)(pq::Connection*)> connection_;
};

// Microseconds since 1970 of a time as it stands, whatever way the server writes times.
std::string micros(std::string_view column) {
  return fmt::format("(extract(epoch from {}) * 1000000)::bigint", column);
}

class PostgresTables {
 public:
  PostgresTables(const StorageRequest& request, Server& server)
      : request_(request), server_(server), assembler_(request.study) {}

  Result<StorageContent> read() {
    HR_TRYV(server_.query("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"));
    HR_TRYV(server_.query("SET lock_timeout = '60s'"));
    HR_TRYV(server_.query("SET extra_float_digits = 3"));  // all digits, from servers before 12, too
    HR_TRYV(server_.query("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ"));
    HR_TRYV(check());
    HR_TRYV(read_studies());
    HR_TRYV(read_trials());
    HR_TRYV(read_numbers());
    HR_TRYV(read_attributes());
    auto content = finished_content(
        request_, assembler_, fmt::format("PostgreSQL, schema {}, Optuna {}", visible(schema_), visible(library_)));
    if (!content) return content;
    for (Study& study : content->studies) {
      study.storage = "postgresql";
      study.schema = schema_;
      study.library_version = library_;
    }
    return content;
  }

 private:
  Result<bool> has_table(std::string_view name) {
    HR_TRY(const std::string found, server_.text(fmt::format("SELECT to_regclass('{}')", name)));
    return !found.empty();
  }

  // The column as text, or an empty one where a table of an older schema has none.
  Result<std::string> column(std::string_view table, std::string_view name) {
    HR_TRY(const std::string found,
           server_.text(fmt::format("SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('{}') AND attname = '{}' "
                                    "AND NOT attisdropped",
                                    table, name)));
    return found.empty() ? std::string("''") : fmt::format("{}::text", name);
  }

  Result<void> check() {
    for (const std::string_view name : {"version_info", "studies", "trials"}) {
      HR_TRY(const bool there, has_table(name));
      if (!there)
        return fail(Errc::kInvalidInput, fmt::format("the database has no table {}: it is no storage of Optuna", name),
                    "name the URL that optuna.create_study(storage=…) was given");
    }
    HR_TRY(const bool versions, has_table("alembic_version"));
    if (versions) {
      HR_TRY(schema_, server_.text("SELECT version_num FROM alembic_version"));
    }
    HR_TRYV(check_schema(schema_));
    HR_TRY(library_, server_.text("SELECT library_version FROM version_info"));
    return {};
  }

  static std::int64_t id(const Rows& rows, int i, int column) {
    return rows.number<std::int64_t>(i, column).value_or(-1);
  }

  static std::optional<Nanos> time(const Rows& rows, int i, int column) {
    const auto at = rows.number<std::int64_t>(i, column);
    constexpr std::int64_t kYear2100 = 4'102'444'800'000'000;
    if (!at || *at < 0 || *at >= kYear2100) return std::nullopt;
    return *at * kMicrosecond;
  }

  Result<void> read_studies() {
    HR_TRYV(server_.each_row(
        "SELECT study_id, study_name FROM studies ORDER BY study_id",
        [this](const Rows& rows, int i) { assembler_.add_study(id(rows, i, 0), rows.text(i, 1).value_or("")); }));
    HR_TRYV(server_.each_row(
        "SELECT study_id, objective, direction::text FROM study_directions", [this](const Rows& rows, int i) {
          assembler_.add_direction(id(rows, i, 0), id(rows, i, 1), direction_of(rows.text(i, 2).value_or("")));
        }));
    return server_.each_row(
        fmt::format("SELECT study_id, key, value_json FROM study_system_attributes WHERE {}", kReadKeys),
        [this](const Rows& rows, int i) {
          assembler_.add_study_attribute(id(rows, i, 0), rows.text(i, 1).value_or(""),
                                         parse_python_json(rows.text(i, 2).value_or("")));
        });
  }

  Result<void> read_trials() {
    return server_.each_row(
        fmt::format("SELECT trial_id, study_id, number, state::text, {}, {} FROM trials ORDER BY trial_id",
                    micros("datetime_start"), micros("datetime_complete")),
        [this](const Rows& rows, int i) {
          const auto state = trial_state_of(rows.text(i, 3).value_or(""));
          if (!state) return assembler_.count_left_out();
          assembler_.add_trial({.id = id(rows, i, 0),
                                .study = id(rows, i, 1),
                                .number = rows.number<std::int64_t>(i, 2),
                                .state = *state,
                                .start = time(rows, i, 4),
                                .complete = time(rows, i, 5)});
        });
  }

  Result<void> read_numbers() {
    HR_TRYV(server_.each_row(
        "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params ORDER BY param_id",
        [this](const Rows& rows, int i) {
          assembler_.add_parameter(id(rows, i, 0), rows.text(i, 1).value_or(""), rows.number<double>(i, 2),
                                   rows.text(i, 3).value_or(""));
        }));
    HR_TRY(const std::string type, column("trial_values", "value_type"));
    HR_TRYV(server_.each_row(
        fmt::format("SELECT trial_id, objective, value, {} FROM trial_values", type), [this](const Rows& rows, int i) {
          assembler_.add_value(id(rows, i, 0), id(rows, i, 1),
                               stored_value(rows.number<double>(i, 2), rows.text(i, 3).value_or("")));
        }));
    HR_TRY(const std::string report_type, column("trial_intermediate_values", "intermediate_value_type"));
    return server_.each_row(
        fmt::format("SELECT trial_id, step, intermediate_value, {} FROM trial_intermediate_values", report_type),
        [this](const Rows& rows, int i) {
          assembler_.add_report(id(rows, i, 0), id(rows, i, 1),
                                stored_value(rows.number<double>(i, 2), rows.text(i, 3).value_or("")));
        });
  }

  Result<void> read_attributes() {
    HR_TRYV(server_.each_row(
        fmt::format("SELECT trial_id, key, value_json FROM trial_system_attributes WHERE {}", kReadKeys),
        [this](const Rows& rows, int i) {
          assembler_.add_attribute(id(rows, i, 0), rows.text(i, 1).value_or(""),
                                   parse_python_json(rows.text(i, 2).value_or("")));
        }));
    HR_TRY(const bool heartbeats, has_table(kHeartbeatTable));
    if (!heartbeats) return {};
    // The server's clock in the zone of the session, as Optuna's own sessions have it unless PGTZ says otherwise.
    return server_.each_row(
        fmt::format("SELECT trial_id, {} FROM {}", micros("heartbeat::timestamptz"), kHeartbeatTable),
        [this](const Rows& rows, int i) { assembler_.add_heartbeat(id(rows, i, 0), time(rows, i, 1)); });
  }

  const StorageRequest& request_;
  Server& server_;
  StudyAssembler assembler_;
  std::string schema_, library_;
};

Result<StorageContent> read_tables(const StorageRequest& request, const std::string& library, const PostgresUrl& url) {
  HR_TRY(const Libpq libpq, Libpq::load(library));
  HR_TRY(Server server, Server::connect(libpq, url));
  return PostgresTables(request, server).read();
}

}  // namespace

Result<StorageContent> read_postgres(const StorageRequest& request, const std::string& library) {
  HR_TRY(const PostgresUrl url, parse_postgres_url(request.name));
  auto content = read_tables(request, library, url);
  if (!content) {
    Error error = within(visible(url.shown), content.error());
    if (error.hint.empty()) error.hint = "may this user read Optuna's tables? psql with the same URL says more";
    return tl::unexpected(std::move(error));
  }
  return content;
}

}  // namespace headroom
