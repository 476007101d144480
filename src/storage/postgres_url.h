// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace headroom {

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
