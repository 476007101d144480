// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headroom {

// A prepared statement. Parameters count from 1, columns from 0; bound text must outlive the next run() or reset().
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  void bind(int index, std::int64_t value);
  void bind(int index, std::string_view text);
  void bind_blob(int index, std::string_view bytes);
  void bind_null(int index);
  [[nodiscard]] Result<bool> step();  // true: there is a row
  [[nodiscard]] Result<void> run();   // to the end; ready to be bound again
  void reset();

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] bool is_number(int column) const;  // stored as one
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;  // text or blob, until the next step

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

enum class Access { kReadOnly, kReadWrite };

// A connection. Closing happens when it is dropped.
class Database {
 public:
  Database() = default;
  // `name` is a path, or a "file:" URI. Nothing but the file and what SQLite keeps beside it is opened or deleted.
  [[nodiscard]] static Result<Database> open(const std::string& name, Access access);
  [[nodiscard]] Result<void> execute(const char* sql);
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  // The first column of the first row, or 0 if there is none.
  [[nodiscard]] Result<std::int64_t> number(std::string_view sql);
  // For files that may be anybody's: fails unless each of `names` that exists is an ordinary table whose columns are
  // all stored. A view, a virtual table or a generated column would compute what they hold, for as long as they like; a
  // default is read again for every row that lacks it.
  [[nodiscard]] Result<void> check_stored_tables(std::span<const std::string_view> names);
  // For files that may be anybody's: `most_bytes` of a text or blob, nothing that the schema would compute or call.
  [[nodiscard]] Result<void> distrust(int most_bytes);
  // Ends a statement that goes on and on: pages of a damaged file may point at each other. `steps` of SQLite's virtual
  // machine for all statements together.
  void limit_steps(std::int64_t steps);
  [[nodiscard]] sqlite3* raw() const { return connection_.get(); }
  [[nodiscard]] bool in_transaction() const { return connection_ && sqlite3_get_autocommit(connection_.get()) == 0; }
  // Waits until the main file, not its log, is on the disk: for what was written with synchronous=OFF.
  [[nodiscard]] Result<void> sync();
  void close() { connection_.reset(); }

 private:
  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  std::unique_ptr<std::int64_t> steps_left_;  // known to the connection
  std::unique_ptr<sqlite3, Close> connection_;
};

// "file:" URI of `path` that tells SQLite that nobody writes, so that it asks for no locks and looks for no log.
[[nodiscard]] std::string immutable_name(const std::string& path);

// For files that may be anybody's, before they are opened (open() does, too): SQLite would wait for a pipe, the logs
// beside it included, and would delete the file that a hot journal names. What is not there is no error.
[[nodiscard]] Result<void> check_regular_files(const std::string& path);

// The connection's last error, with SQLite's own words.
[[nodiscard]] Error sqlite_error(sqlite3* connection);

}  // namespace headroom
