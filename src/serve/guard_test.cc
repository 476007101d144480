// SPDX-License-Identifier: Apache-2.0
#include "serve/guard.h"

#include <gmock/gmock.h>

namespace headroom::serve {
namespace {

struct GuardTest : testing::Test {
  Door door{.hosts = hosts_of_loopback(), .token = "secret-of-the-user", .metrics_token = "secret-of-scrapes"};

  static Request asking(std::string path) {
    Request request;
    request.method = Request::Method::kGet;
    const auto question = path.find('?');
    if (question != path.npos) request.query = path.substr(question + 1), path.resize(question);
    request.path = std::move(path);
    request.host = "localhost:7117";
    return request;
  }
  [[nodiscard]] Request knowing(std::string path) const {
    Request request = asking(std::move(path));
    request.cookie = "theme=dark; headroom_token=" + door.token;
    return request;
  }
};

TEST_F(GuardTest, WithoutTheTokenThereIsOnlyWhetherItLives) {
  EXPECT_EQ(judge(asking("/healthz"), door), Verdict::kCome);
  for (const char* path : {"/", "/app.js", "/api/overview", "/api/events", "/metrics", "/healthz/", "/nothing"})
    EXPECT_EQ(judge(asking(path), door), Verdict::kNoToken) << path;
}

TEST_F(GuardTest, TheTokenComesByCookieOrHeader) {
  EXPECT_EQ(judge(knowing("/api/overview"), door), Verdict::kCome);
  Request program = asking("/api/overview");
  for (const char* scheme : {"Bearer ", "bearer ", "BEARER   "}) {
    program.authorization = scheme + door.token;
    EXPECT_EQ(judge(program, door), Verdict::kCome) << scheme;
  }
  for (const std::string& wrong :
       {"Basic " + door.token, door.token, std::string("Bearer"), "Bearer " + door.token + "x"}) {
    program.authorization = wrong;
    EXPECT_EQ(judge(program, door), Verdict::kNoToken) << wrong;
  }
  Request browser = asking("/");
  for (const std::string& wrong :
       {std::string("headroom_token="), std::string("headroom_token=x"), "headroom_tokens=" + door.token, door.token}) {
    browser.cookie = wrong;
    EXPECT_EQ(judge(browser, door), Verdict::kNoToken) << wrong;
  }
}

TEST_F(GuardTest, AnEmptyTokenOpensNothing) {
  door.token.clear();
  door.metrics_token.clear();
  Request request = asking("/metrics");
  request.authorization = "Bearer ";
  request.cookie = "headroom_token=";
  EXPECT_EQ(judge(request, door), Verdict::kNoToken);
  EXPECT_EQ(judge(asking("/?token="), door), Verdict::kNoToken);
}

TEST_F(GuardTest, TheTokenOfScrapesOpensMetricsAlone) {
  Request request = asking("/metrics");
  request.authorization = "Bearer " + door.metrics_token;
  EXPECT_EQ(judge(request, door), Verdict::kCome);
  request.path = "/metrics/dcgm";
  EXPECT_EQ(judge(request, door), Verdict::kCome);
  for (const char* path : {"/", "/api/overview", "/metricsx", "/api/events"}) {
    request.path = path;
    EXPECT_EQ(judge(request, door), Verdict::kNoToken) << path;
  }
  request = asking("/metrics");
  request.cookie = "headroom_token=" + door.metrics_token;
  EXPECT_EQ(judge(request, door), Verdict::kNoToken);
  EXPECT_EQ(judge(asking("/?token=" + door.metrics_token), door), Verdict::kNoToken);
}

TEST_F(GuardTest, ANameThatIsNotOursIsToldSo) {
  Request request = knowing("/api/overview");
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "localhost", "LOCALHOST:1", "[::1]", "[::1]:7117"}) {
    request.host = host;
    EXPECT_EQ(judge(request, door), Verdict::kCome) << host;
  }
  for (const char* host : {"", "evil.example", "evil.example:7117", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.0.0.1:7117@evil.example", "[::1", "[::1]x", "localhost:", "localhost:80:80", ":7117",
                           "127.0.0.2", "0.0.0.0", "[::]", "localhost."}) {
    request.host = host;
    EXPECT_EQ(judge(request, door), std::string_view(host) == "localhost:" ? Verdict::kCome : Verdict::kOtherHost)
        << host;
  }
  request.host = "gpu1.example.org";
  door.hosts.push_back("gpu1.example.org");
  EXPECT_EQ(judge(request, door), Verdict::kCome);
}

TEST_F(GuardTest, PagesOfOthersGetNothing) {
  Request request = knowing("/api/overview");
  for (const char* origin : {"http://localhost:7117", "https://localhost:7117"}) {
    request.origin = origin;
    EXPECT_EQ(judge(request, door), Verdict::kCome) << origin;
  }
  for (const char* origin :
       {"null", "http://evil.example", "http://localhost:8888", "http://localhost", "localhost:7117"}) {
    request.origin = origin;
    EXPECT_EQ(judge(request, door), Verdict::kOtherSite) << origin;
  }
  request.origin.clear();
  for (const char* site : {"same-origin", "none"}) {
    request.site = site;
    EXPECT_EQ(judge(request, door), Verdict::kCome) << site;
  }
  for (const char* site : {"cross-site", "same-site", "other"}) {
    request.site = site;
    EXPECT_EQ(judge(request, door), Verdict::kOtherSite) << site;
  }
  request.mode = "navigate";  // a link to what is no page
  EXPECT_EQ(judge(request, door), Verdict::kOtherSite);
}

TEST_F(GuardTest, ALinkMayLeadToThePageAndLogIn) {
  Request link = knowing("/");
  link.site = "cross-site";
  EXPECT_EQ(judge(link, door), Verdict::kOtherSite);  // an image, a script, a fetch
  link.mode = "navigate";
  EXPECT_EQ(judge(link, door), Verdict::kCome);
  Request login = asking("/?token=" + door.token);
  EXPECT_EQ(judge(login, door), Verdict::kLogin);
  login.site = "cross-site";
  EXPECT_EQ(judge(login, door), Verdict::kOtherSite);
  login.mode = "navigate";
  EXPECT_EQ(judge(login, door), Verdict::kLoginFromSite);
  EXPECT_EQ(judge(asking("/?token=wrong"), door), Verdict::kNoToken);
  EXPECT_EQ(judge(asking("/app.js?token=" + door.token), door), Verdict::kNoToken);
}

TEST_F(GuardTest, NothingCanBeChanged) {
  Request request = knowing("/api/overview");
  request.method = Request::Method::kOther;
  EXPECT_EQ(judge(request, door), Verdict::kMethod);
  request.host = "evil.example";
  EXPECT_EQ(judge(request, door), Verdict::kOtherHost);
}

TEST_F(GuardTest, WhoEntersGetsThePageOrARoute) {
  EXPECT_EQ(enter(asking("/"), door).response->status, 401);
  EXPECT_FALSE(enter(asking("/"), door).trusted);
  EXPECT_FALSE(enter(knowing("/healthz"), door).trusted);
  const Entry page = enter(knowing("/app.css"), door);
  ASSERT_TRUE(page.response && page.trusted);
  EXPECT_EQ(page.response->status, 200);
  EXPECT_TRUE(page.response->gzip);
  Request again = knowing("/app.css");
  again.if_none_match = page.response->etag;
  EXPECT_EQ(enter(again, door).response->status, 304);
  EXPECT_EQ(enter(knowing("/nothing"), door).response->status, 404);
  const Entry overview = enter(knowing("/api/overview"), door);
  EXPECT_FALSE(overview.response);
  EXPECT_EQ(overview.route.what, Route::What::kOverview);
}

TEST(SecretTest, SecretsAreEqualOrNot) {
  EXPECT_TRUE(same_secret("a", "a"));
  EXPECT_FALSE(same_secret("a", "b"));
  EXPECT_FALSE(same_secret("a", "aa"));
  EXPECT_FALSE(same_secret("", ""));
}

TEST(HostNameTest, NamesAreNamesWithoutPorts) {
  for (const char* name : {"gpu1", "gpu1.example.org", "10.0.0.1", "[fe80::1]", "a_b-c"})
    EXPECT_TRUE(is_host_name(name)) << name;
  for (const char* name : {"", "gpu1:80", "http://gpu1", "a b", "*", "[]", "[gpu]", "a\r\nb"})
    EXPECT_FALSE(is_host_name(name)) << name;
}

TEST(ResponseTest, LoginSetsACookieThatOnlyThisPageSends) {
  const Door door{.hosts = {"localhost"}, .token = "secret"};
  const std::string cookie = "Set-Cookie: headroom_token=secret; HttpOnly; SameSite=Strict; Path=/\r\n";
  EXPECT_THAT(head_of(response_of(Verdict::kLogin, {}, door), true),
              testing::AllOf(testing::StartsWith("HTTP/1.1 303 "), testing::HasSubstr("Location: /\r\n"),
                             testing::HasSubstr(cookie)));
  const Response page = response_of(Verdict::kLoginFromSite, {}, door);
  EXPECT_THAT(head_of(page, true), testing::AllOf(testing::StartsWith("HTTP/1.1 200 "), testing::HasSubstr(cookie)));
  EXPECT_THAT(page.body.bytes, testing::HasSubstr("url=/"));
  EXPECT_THAT(page.body.bytes, testing::Not(testing::HasSubstr("secret")));
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
                testing::AllOf(testing::Not(testing::HasSubstr("script>")), testing::Not(testing::HasSubstr("evil"))));
  }
  Request program;
  program.path = "/api/overview";
  EXPECT_THAT(response_of(Verdict::kNoToken, program, {}).body.bytes, testing::HasSubstr("headroom.error/1"));
  EXPECT_THAT(head_of(response_of(Verdict::kMethod, program, {}), false), testing::HasSubstr("Allow: GET, HEAD\r\n"));
}

}  // namespace
}  // namespace headroom::serve
