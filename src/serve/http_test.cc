// SPDX-License-Identifier: Apache-2.0
#include "serve/http.h"

#include <gmock/gmock.h>

namespace headroom::serve {

namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Method = Request::Method;

std::string with(std::string_view line, std::string_view headers = "") {
  return std::string(line) + " HTTP/1.1\r\nHost: localhost:7117\r\n" + std::string(headers) + "\r\n";
}

TEST(RequestTest, ItsPartsAreWhatWasSent) {
  const std::string bytes =
      with("GET /api/overview?a=b",
           "Origin: http://localhost:7117\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nCookie: a=b\r\n"
           "Cookie: c=d\r\nAuthorization: Bearer x\r\nAccept: */*\r\nIf-None-Match: \"1\"\r\n");
  const Parsed parsed = parse_request(bytes + "GET /next");
  ASSERT_TRUE(parsed.request);
  EXPECT_EQ(parsed.used, bytes.size());
  const Request& request = *parsed.request;
  EXPECT_EQ(request.method, Method::kGet);
  EXPECT_EQ(request.path, "/api/overview");
  EXPECT_EQ(request.query, "a=b");
  EXPECT_EQ(request.host, "localhost:7117");
  EXPECT_EQ(request.origin, "http://localhost:7117");
  EXPECT_EQ(request.site, "same-origin");
  EXPECT_EQ(request.mode, "cors");
  EXPECT_EQ(request.cookie, "a=b; c=d");
  EXPECT_EQ(request.authorization, "Bearer x");
  EXPECT_EQ(request.accept, "*/*");
  EXPECT_EQ(request.if_none_match, "\"1\"");
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestTest, EveryBeginningOfARequestIsNotOneYet) {
  const std::string bytes = with("HEAD /", "Accept: */*\r\n");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Parsed parsed = parse_request(std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(parsed.request);
    EXPECT_EQ(parsed.refused, 0) << size;
  }
  EXPECT_EQ(parse_request(bytes).request->method, Method::kHead);
}

TEST(RequestTest, AConnectionGoesOnOnlyWhereBothSaySo) {
  EXPECT_FALSE(parse_request(with("GET /", "Connection: close\r\n")).request->keep_alive);
  EXPECT_FALSE(parse_request("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").request->keep_alive);
  EXPECT_TRUE(parse_request("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n").request->keep_alive);
}

TEST(RequestTest, WhatIsTooLongIsRefusedBeforeItsEnd) {
  const std::string line = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
  const std::string fits = line + std::string(kLongestHead - line.size() - 4, 'x') + "\r\n\r\n";
  ASSERT_EQ(fits.size(), kLongestHead);
  EXPECT_TRUE(parse_request(fits).request);
  EXPECT_EQ(parse_request(line + std::string(kLongestHead, 'x')).refused, 431);
  EXPECT_EQ(parse_request(line + std::string(kLongestHead - line.size() - 3, 'x') + "\r\n\r\n").refused, 431);
  EXPECT_EQ(parse_request("GET /" + std::string(kLongestHead, 'x')).refused, 431);
}

TEST(RequestTest, NoBodyIsTaken) {
  EXPECT_EQ(parse_request(with("POST /", "Content-Length: 1\r\n")).refused, 413);
  EXPECT_EQ(parse_request(with("POST /", "Transfer-Encoding: chunked\r\n")).refused, 413);
  EXPECT_EQ(parse_request(with("POST /", "Content-Length: 0\r\n")).request->method, Method::kOther);
  EXPECT_NE(parse_request(with("GET /", "Content-Length: 1\r\nContent-Length: 2\r\n")).refused, 0);
  EXPECT_NE(parse_request(with("GET /", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")).refused, 0);
}

TEST(RequestTest, WhatTwoProgramsMayReadInTwoWaysIsRefused) {
  EXPECT_EQ(parse_request(with("GET /", "Host: evil.example\r\n")).refused, 400);
  EXPECT_EQ(parse_request(with("GET /", "Origin: a\r\nOrigin: b\r\n")).refused, 400);
  EXPECT_EQ(parse_request(with("GET /", "Authorization: a\r\nAuthorization: b\r\n")).refused, 400);
  EXPECT_EQ(parse_request("GET / HTTP/1.1\r\n\r\n").refused, 400);
  EXPECT_EQ(parse_request("GET / HTTP/2.0\r\nHost: a\r\n\r\n").refused, 505);
  EXPECT_EQ(parse_request(with("GET http://evil.example/")).refused, 400);
  EXPECT_EQ(parse_request(with("OPTIONS *")).refused, 400);
  EXPECT_EQ(parse_request(with("GET /a b")).refused, 505);
  EXPECT_EQ(parse_request(with("GET /", "Bad Header: 1\r\n")).refused, 400);
  EXPECT_EQ(parse_request(with("GET /", std::string("X: a\0b\r\n", 8))).refused, 400);
  EXPECT_EQ(parse_request("\x16\x03\x01 hello of TLS\r\n\r\n").refused, 400);
}

TEST(RequestTest, ParametersAreDecoded) {
  Request request;
  request.query = "token=a%2fb%41&empty=&bare&bad=%4&worse=%zz&token=second";
  EXPECT_EQ(request.parameter("token"), "a/bA");
  EXPECT_EQ(request.parameter("empty"), "");
  EXPECT_EQ(request.parameter("bare"), "");
  EXPECT_EQ(request.parameter("bad"), std::nullopt);
  EXPECT_EQ(request.parameter("worse"), std::nullopt);
  EXPECT_EQ(request.parameter("none"), std::nullopt);
}

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
