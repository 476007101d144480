// SPDX-License-Identifier: Apache-2.0
#include "serve/response.h"

#include <gmock/gmock.h>

namespace headroom::serve {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ResponseTest, EveryHeadSaysWhatBrowsersMayDo) {
  const std::string head = head_of({.body = std::string("{}\n")}, true);
  EXPECT_THAT(head, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\n"), HasSubstr("Content-Length: 3\r\n"),
                          HasSubstr("Content-Type: application/json\r\n"), HasSubstr("Connection: keep-alive\r\n"),
                          HasSubstr("Cache-Control: no-store\r\n"), HasSubstr("nosniff"), HasSubstr("no-referrer"),
                          HasSubstr("default-src 'none'; script-src 'self'"), HasSubstr("frame-ancestors 'none'")));
  for (const std::string& other : {head_of_stream(), head_of(plain_refusal(431), false)})
    EXPECT_THAT(other,
                AllOf(HasSubstr("default-src 'none'"), HasSubstr("nosniff"), HasSubstr("Connection: close\r\n")));
  EXPECT_THAT(head_of({.own_policy = true}, true),
              AllOf(Not(HasSubstr("default-src")), HasSubstr("frame-ancestors 'none'")));
}

TEST(ResponseTest, LoginSetsACookieThatOnlyThisPageSends) {
  const Door door{.hosts = {"localhost"}, .token = "secret"};
  const std::string cookie = "Set-Cookie: headroom_token=secret; HttpOnly; SameSite=Strict; Path=/\r\n";
  EXPECT_THAT(head_of(response_of(Verdict::kLogin, {}, door), true),
              AllOf(StartsWith("HTTP/1.1 303 "), HasSubstr("Location: /\r\n"), HasSubstr(cookie)));
  const Response page = response_of(Verdict::kLoginFromSite, {}, door);
  EXPECT_THAT(head_of(page, true), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr(cookie)));
  EXPECT_THAT(page.body.bytes, HasSubstr("url=/"));
  EXPECT_THAT(page.body.bytes, Not(HasSubstr("secret")));
}

TEST(ResponseTest, RefusalsSayWhatAndNothingOfTheAsker) {
  Request hostile;
  hostile.path = "/<script>";
  hostile.host = "evil.example\r\nX: y";
  for (const auto& [verdict, status] : {std::pair(Verdict::kNoToken, 401), std::pair(Verdict::kOtherHost, 421),
                                        std::pair(Verdict::kOtherSite, 403), std::pair(Verdict::kMethod, 405)}) {
    const Response response = response_of(verdict, hostile, {});
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.type, kText);
    EXPECT_FALSE(response.body.bytes.empty());
    EXPECT_THAT(head_of(response, false) + std::string(response.body.bytes),
                AllOf(Not(HasSubstr("script>")), Not(HasSubstr("evil"))));
  }
  Request program;
  program.path = "/api/overview";
  EXPECT_THAT(response_of(Verdict::kNoToken, program, {}).body.bytes, HasSubstr("headroom.error/1"));
  EXPECT_THAT(head_of(response_of(Verdict::kMethod, program, {}), false), HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST(ResponseTest, ErrorsKeepTheirWordsAndGetAStatus) {
  const Response response = error_response(Error{.code = Errc::kNotFound, .what = "a \"b\"\nc", .hint = ""});
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body.bytes, "{\"schema\":\"headroom.error/1\",\"what\":\"a \\\"b\\\"\\nc\",\"hint\":null}\n");
  EXPECT_EQ(error_response(Error{.code = Errc::kCorrupt, .what = "x", .hint = ""}).status, 422);
}

TEST(ResponseTest, WhatTheClientHasIsNotSentAgain) {
  EXPECT_THAT(
      head_of({.status = 304, .etag = "\"1\"", .gzip = true}, true),
      AllOf(HasSubstr("ETag: \"1\"\r\n"), Not(HasSubstr("Content-Length")), Not(HasSubstr("Content-Encoding"))));
}

}  // namespace
}  // namespace headroom::serve
