// SPDX-License-Identifier: Apache-2.0
// Without a server; with one: tests/e2e/test_study_storage.py.
#include "storage/postgres_storage.h"

#include <gtest/gtest.h>

#include "storage/postgres_client.h"

namespace headroom {
namespace {

TEST(PostgresUrl, APasswordMayHaveWhatSqlalchemyLetsItHave) {
  const auto url =
      parse_postgres_url("postgresql+psycopg2://me:p/s:s?%40%@db.example:5433/optuna?sslmode=require").value();
  EXPECT_EQ(url.connect, "postgresql://me:p%2Fs%3As%3F%40%25@db.example:5433/optuna?sslmode=require");
  EXPECT_EQ(url.shown, "postgresql://me@db.example:5433/optuna");
  EXPECT_EQ(url.password, "p/s:s?@%");
}

TEST(PostgresUrl, WithoutAPasswordNothingIsHidden) {
  for (const char* text : {"postgresql://host/db", "postgres://me@host/db", "postgresql:///db?host=/run/x"}) {
    const auto url = parse_postgres_url(text).value();
    EXPECT_TRUE(url.password.empty()) << text;
    EXPECT_EQ(without_password("a text", url), "a text");
  }
  EXPECT_EQ(parse_postgres_url("postgres://me@host/db")->connect, "postgresql://me@host/db");
}

TEST(PostgresUrl, ThePasswordIsHiddenInWhatOthersSay) {
  const auto url = parse_postgres_url("postgresql://me:ab@host/db").value();
  EXPECT_EQ(without_password("for \"ab\", ab: not abc", url), "for \"***\", ***: not abc");
  const auto option = parse_postgres_url("postgresql:///db?host=x&password=s%20t&port=1").value();
  EXPECT_EQ(option.password, "s t");
  EXPECT_EQ(option.shown, "postgresql:///db");
}

TEST(PostgresUrl, APasswordWithoutAHostIsRefusedAndNotRepeated) {
  for (const char* text :
       {"postgresql://bob:PGSECRET/db", "postgresql://bob:1PGSECRET", "postgresql://h:1,bob:PGSECRET/db"}) {
    const auto url = parse_postgres_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ((url.error().what + url.error().hint).find("PGSECRET"), std::string::npos);
  }
  for (const char* text : {"postgresql://h1:5432,h2:5433/db", "postgresql://[::1]:5432/db", "postgresql://[::1]/db",
                           "postgresql:///db", "postgresql://u:p%3Aq@h/db?options=-c%20a:b"})
    EXPECT_TRUE(parse_postgres_url(text)) << text;
}

TEST(PostgresUrl, TwoAtSignsAreRefused) {
  for (const char* text : {"postgresql://me:p@55@host/db", "postgresql://me:p?55@55@host/db"}) {
    const auto url = parse_postgres_url(text);
    ASSERT_FALSE(url);
    EXPECT_EQ(url.error().what.find("55"), std::string::npos);
  }
  EXPECT_TRUE(parse_postgres_url("postgresql://me:p@host/db?application_name=a@b"));
}

TEST(PostgresStorage, WithoutLibpqTheNextStepIsSaid) {
  const auto content = read_postgres({.name = "postgresql://me:secret@host/db"}, "libheadroom-is-not-there.so.5");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Errc::kNotFound);
  EXPECT_NE(content.error().what.find("libheadroom-is-not-there"), std::string::npos);
  EXPECT_EQ(content.error().what.find("secret"), std::string::npos);
  EXPECT_NE(content.error().hint.find("libpq5"), std::string::npos);
}

TEST(PostgresStorage, AnotherLibraryIsNotTakenForLibpq) {
  EXPECT_EQ(Libpq::load("libm.so.6").error().code, Errc::kUnsupported);
}

}  // namespace
}  // namespace headroom
