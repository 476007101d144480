// SPDX-License-Identifier: Apache-2.0
#include "report/document.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html.h"
#include "report/html_charts.h"
#include "report/html_style.h"
#include "report/words.h"

namespace headroom::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kHostile = "<b>&\"' |`*_[x](y) @someone #7\n\xff\u202e";

Explanation hostile() {
  Explanation e;
  e.path = "/home/<u>/run.hrec";
  e.headline = kHostile;
  e.ledger.end = 10 * kSecond;
  Device gpu;
  gpu.name = kHostile;
  e.ledger.devices.push_back(gpu);
  e.ledger.entries.push_back({.account = Account::kUseful, .ns = 10 * kSecond});
  e.slices.push_back({{.begin = 0, .end = 10 * kSecond, .account = Account::kUseful}});
  Finding finding;
  finding.title = kHostile;
  finding.evidence = {std::string(kHostile)};
  e.findings.push_back(finding);
  e.meta.command = {"train", "--password", "hunter2", std::string(kHostile)};
  e.said.parameters = {{"api_key", "hunter2"}, {std::string(kHostile), std::string(kHostile)}};
  return e;
}

struct Written {
  std::string html, markdown;
};
Written written(const Explanation& e, const Recording& recording = {}) {
  const view::View view = view::view_of(recording, e);
  Plan plan;
  plan.nothing = "nothing to change";
  const Document d{e, view, plan, "run.hrec", "", {}};
  return {to_html(d), to_markdown(d)};
}

TEST(Document, TextFromOutsideIsNoMarkup) {
  const Written w = written(hostile());
  EXPECT_THAT(w.html, Not(HasSubstr("<b>")));
  EXPECT_THAT(w.html, HasSubstr("&lt;b&gt;&amp;&quot;&#39; |`*_[x](y) @someone #7\\x0a\\xff\\u202e"));
  EXPECT_THAT(w.markdown, Not(HasSubstr("\u202e")));
  EXPECT_THAT(w.markdown,
              HasSubstr("\\<b\\>\\&\"' \\|\\`\\*\\_\\[x\\](y) @<!-- -->someone \\#<!-- -->7\\\\x0a\\\\xff\\\\u202e"));
}

TEST(Document, TimeThatNoReadingCoversIsUnknownAndNoCost) {
  Explanation e = hostile();
  for (const Account account : {Account::kUnobserved, Account::kHostCode}) {
    e.findings[0].claims = {{0, 0, 5 * kSecond, account, -1}};
    const bool unknown = account == Account::kUnobserved;
    const Written w = written(e);
    EXPECT_EQ(finding_cost(e, e.findings[0]), unknown ? "5.0 s unknown" : "costs 5.0 s");
    EXPECT_EQ(w.html.find("5.0 s unknown") != std::string::npos, unknown);
    EXPECT_EQ(w.html.find(">Costs<") != std::string::npos, !unknown);
    EXPECT_EQ(w.html.find(">Unknown<") != std::string::npos, unknown);
  }
}

TEST(Document, MarkdownMakesNoLinksOfAddresses) {
  Explanation e;
  e.headline = "see http://x.org and www.x.org";
  EXPECT_THAT(written(e).markdown, HasSubstr("see http:<!-- -->//x.org and www<!-- -->.x.org"));
}

TEST(Document, SecretsAreHidden) {
  const Written w = written(hostile());
  for (const std::string& text : {w.html, w.markdown}) EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(w.html, HasSubstr("***"));
}

TEST(Document, OneThatGoesOnSaysSo) {
  Explanation e = hostile();
  e.meta.origin = "run";
  EXPECT_THAT(written(e).html, HasSubstr("Still going on"));
  e.meta.stop_reason = "job_ended";
  EXPECT_THAT(written(e).html, Not(HasSubstr("Still going on")));
}

TEST(Document, NothingIsADocumentToo) {
  const Written w = written(Explanation());
  EXPECT_THAT(w.html, HasSubstr("</html>"));
  EXPECT_THAT(w.markdown, HasSubstr("nothing to change"));
}

TEST(Document, CodeIsFencedByMoreBackticksThanItHas) {
  Explanation e;
  e.meta.command = {"echo", "``"};
  EXPECT_THAT(written(e).markdown, HasSubstr("``` echo '``' ```"));
}

TEST(Document, EveryAccountHasItsColour) {
  for (const AccountInfo& account : kAccounts) {
    EXPECT_THAT(html::kStyle, HasSubstr(fmt::format(".{}{{", html::account_class(account.id))));
    const std::string name = fmt::format("--{}:#", account.cause);
    const std::size_t light = html::kStyle.find(name);
    EXPECT_NE(light, std::string_view::npos) << name;
    EXPECT_NE(html::kStyle.find(name, light + 1), std::string_view::npos) << name << " in the dark";
  }
}

TEST(Charts, AStripPaintsWhatIsHigherFirst) {
  view::Strip strip;
  strip.bins = {{{Account::kUseful, 3}, {Account::kInput, 1}}, {{Account::kUseful, 4}}, {{Account::kUseful, 4}}};
  EXPECT_EQ(html::strip_shapes(strip),
            "<path class=\"a-input\" d=\"M0 40V0h1V40z\"/><path class=\"a-useful\" d=\"M0 40V10h1V0h2V40z\"/>");
}

TEST(Charts, ABandRunsFromTheLowestToTheHighestAndHasGaps) {
  view::Series series;
  series.bins = {{0, 1, 2}, {0.5, 0.5, 1}, {}, {1, 1, 1}};
  EXPECT_EQ(html::series_path(series, 1.0), "<path d=\"M0 0V0h1V30h1V30h-1V60h-1zM3 0V0h1V0h-1z\"/>");
}

}  // namespace
}  // namespace headroom::report
