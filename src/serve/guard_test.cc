// SPDX-License-Identifier: Apache-2.0
#include "serve/guard.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace headroom::serve
