// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

// Our own declarations of the few functions of PostgreSQL's client library that are used; their ABI is the same since
// version 9.1. The library is loaded when a study lies on a server, so that nobody else needs it.
namespace headroom {

namespace pq {
struct Connection;
struct Answer;
inline constexpr int kConnectionOk = 0;  // CONNECTION_OK
inline constexpr int kCommandOk = 1;     // PGRES_COMMAND_OK
inline constexpr int kTuplesOk = 2;      // PGRES_TUPLES_OK
inline constexpr int kSqlstate = 'C';    // PG_DIAG_SQLSTATE
using NoticeProcessor = void (*)(void*, const char*);
}  // namespace pq

// member, result, arguments, name
#define HEADROOM_LIBPQ_FUNCTIONS(X)                                                                        \
  X(connect, pq::Connection*, (const char* const* keywords, const char* const* values, int expand),        \
    "PQconnectdbParams")                                                                                   \
  X(finish, void, (pq::Connection*), "PQfinish")                                                           \
  X(status, int, (const pq::Connection*), "PQstatus")                                                      \
  X(error, char*, (const pq::Connection*), "PQerrorMessage")                                               \
  X(on_notice, pq::NoticeProcessor, (pq::Connection*, pq::NoticeProcessor, void*), "PQsetNoticeProcessor") \
  X(exec, pq::Answer*, (pq::Connection*, const char* sql), "PQexec")                                       \
  X(answer_status, int, (const pq::Answer*), "PQresultStatus")                                             \
  X(answer_error, char*, (const pq::Answer*), "PQresultErrorMessage")                                      \
  X(answer_field, char*, (const pq::Answer*, int field), "PQresultErrorField")                             \
  X(clear, void, (pq::Answer*), "PQclear")                                                                 \
  X(rows, int, (const pq::Answer*), "PQntuples")                                                           \
  X(value, char*, (const pq::Answer*, int row, int column), "PQgetvalue")                                  \
  X(length, int, (const pq::Answer*, int row, int column), "PQgetlength")                                  \
  X(is_null, int, (const pq::Answer*, int row, int column), "PQgetisnull")

struct Libpq {
#define HEADROOM_LIBPQ_MEMBER(member, result, arguments, name) result(*member) arguments = nullptr;
  HEADROOM_LIBPQ_FUNCTIONS(HEADROOM_LIBPQ_MEMBER)
#undef HEADROOM_LIBPQ_MEMBER
  std::shared_ptr<void> library;  // closed with the last copy

  // `path` as dlopen() takes it. kNotFound: it is not installed; kUnsupported: it is another library.
  [[nodiscard]] static Result<Libpq> load(const std::string& path);
};

// A URL as SQLAlchemy takes it ("postgresql+psycopg2://user:p/ss@host/db"), for libpq and for people.
struct PostgresUrl {
  std::string connect;   // for libpq: without the driver, user and password percent-encoded
  std::string shown;     // for people: without password and options
  std::string password;  // as it is, "": none; to keep it out of other people's messages
};
// kInvalidInput: it cannot be told where the password ends.
[[nodiscard]] Result<PostgresUrl> parse_postgres_url(std::string_view name);

// `text` with "***" where it has the password as a word of its own.
[[nodiscard]] std::string without_password(std::string text, const PostgresUrl& url);

}  // namespace headroom
