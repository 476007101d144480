// SPDX-License-Identifier: Apache-2.0
// How functions are named: by themselves, with who called them, or by what holds them.
#include <gmock/gmock.h>

#include <algorithm>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

// A helper of two things: what each of them costs is in its own place, and in no bound of the other.
TEST(StackFindings, AFunctionThatSeveralThingsCallIsNamedWithItsCallers) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t > 20 && t <= 30 ? 0.0 : 0.5; });
  builder.process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    if (i >= 20 && i < 30) {
      builder.stacks(7, i, i + 1, {"<module> (/u/a.py:1)", "evaluate (/u/a.py:7)", "burn (/u/tr.py:8)"});
      continue;
    }
    builder.stacks(7, i, i + 0.5, {"<module> (/u/a.py:1)", "Net.forward (/u/net.py:2)"});
    builder.stacks(7, i + 0.5, i + 1, {"<module> (/u/a.py:1)", "tokenize (/u/a.py:6)", "burn (/u/tr.py:8)"});
  }
  const Explanation e = explain(builder.build());
  const Finding* validation = find_single(e, Cause::kValidation);
  ASSERT_TRUE(validation && validation->gain) << e.headline;
  EXPECT_THAT(validation->title, EndsWith(": burn (tr.py) called by evaluate (a.py)"));
  EXPECT_LT(validation->gain->high, 60.0 / 45) << "what tokenize costs is no part of it";
  const auto host = std::find_if(e.findings.begin(), e.findings.end(), [&](const Finding& finding) {
    return finding.title.ends_with(": burn (tr.py) called by tokenize (a.py)");
  });
  EXPECT_NE(host, e.findings.end()) << e.findings.front().title;
  EXPECT_THAT(e.headline, Not(HasSubstr("called by")));
}

// A helper of several parts of one thing: these are what a person looks for.
TEST(StackFindings, WhoCalledTheFunctionThatTookTheTimeIsSaid) {
  const auto told = [](bool one_caller) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.5; });
    builder.process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      const std::string caller = one_caller || i % 2 == 0 ? "rank_ic (/u/a.py:6)" : "rolling_mean (/u/a.py:4)";
      builder.stacks(7, i, i + 0.5, {"<module> (/u/a.py:1)", "Net.forward (/u/net.py:2)"});
      builder.stacks(7, i + 0.5, i + 1, {"<module> (/u/a.py:1)", caller, "busy (/u/a.py:8)"});
    }
    return everything(explain(builder.build()));
  };
  EXPECT_THAT(told(false), HasSubstr("busy (a.py) was called by rank_ic (a.py) in 50 % of the looks, by rolling_mean "
                                     "(a.py) in 50 %"));
  EXPECT_THAT(told(true), Not(HasSubstr("was called by")));
}

// Named apart, too, but nothing says that they are not one thing.
TEST(StackFindings, CallersOfOneAccountMayHaveOneCause) {
  RecordingBuilder builder(80);
  const auto evaluates = [](double t) { return t > 20 && t <= 30; };
  const auto prepares = [](double t) { return t > 50 && t <= 60; };
  builder.gpu(0, [=](double t) { return evaluates(t) || prepares(t) ? 0.0 : 0.5; });
  builder.process(7, 1, 0, 80, 1).context(7, 0, 0, 80);
  for (int i = 0; i < 80; ++i) {
    const std::string caller = evaluates(i + 1)  ? "evaluate (/u/a.py:7)"
                               : prepares(i + 1) ? "prepare (/u/a.py:9)"
                                                 : "blend (/u/a.py:6)";
    builder.stacks(7, i, i + 1, {"<module> (/u/a.py:1)", caller, "burn (/u/tr.py:8)"});
  }
  const Explanation e = explain(builder.build());
  const auto host = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title.find("called by blend") != std::string::npos;
  });
  ASSERT_TRUE(host != e.findings.end() && host->gain) << e.findings.front().title;
  EXPECT_GT(host->gain->high, 80.0 / 41) << "39 s: both parts";
}

// Steps of a second: kernels, and then the functions in turn, each for an equal part of the rest.
Finding first_of(const std::vector<Frames>& functions) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 0.6).context(7, 0, 0, 60);
  const double part = 0.5 / static_cast<double>(functions.size());
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, {"<module> (/u/a.py:1)", "fit (/u/a.py:2)", "_wait (/x/headroom_sim.py:1)"});
    for (std::size_t k = 0; k < functions.size(); ++k) {
      const double begin = i + 0.5 + part * static_cast<double>(k);
      builder.stacks(7, begin, begin + part, functions[k]);
    }
  }
  return explain(builder.build()).findings.front();
}

Frames called(std::initializer_list<const char*> functions) {
  Frames frames{"<module> (/u/a.py:1)", "fit (/u/a.py:2)"};
  frames.insert(frames.end(), functions.begin(), functions.end());
  return frames;
}

TEST(NamedCode, WhereNoFunctionHasMostOfTheTimeTheInnermostOneThatHoldsItIsNamed) {
  const Finding finding = first_of({called({"on_step (/u/a.py:3)", "score (/u/a.py:4)", "ngrams (/u/a.py:5)"}),
                                    called({"on_step (/u/a.py:3)", "score (/u/a.py:4)", "counts (/u/a.py:6)"}),
                                    called({"on_step (/u/a.py:3)", "paint (/u/a.py:7)"})});
  EXPECT_THAT(finding.title, EndsWith(": score (a.py) and what it calls"));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("score (a.py) has 67 % of this time with all that it calls")));
}

TEST(NamedCode, WhatHoldsAllThatAProcessDoesTellsNothing) {
  const Finding finding =
      first_of({called({"ngrams (/u/a.py:5)"}), called({"counts (/u/a.py:6)"}), called({"paint (/u/a.py:7)"})});
  EXPECT_THAT(finding.title, Not(HasSubstr("what it calls")));
}

TEST(NamedCode, AFunctionThatHasMostOfTheTimeItselfIsNamedAlone) {
  const Finding finding = first_of({called({"on_step (/u/a.py:3)", "ngrams (/u/a.py:5)"})});
  EXPECT_THAT(finding.title, EndsWith(": ngrams (a.py)"));
}

// What runs beside kernels later did not do so before the first one.
TEST(NamedCode, BeforeTheFirstKernelNoneRanBesideAnything) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t <= 20 ? 0.0 : 1.0; }).process(7, 1, 0, 60, 0.9).context(7, 0, 0, 60);
  builder.stacks(7, 0, 10, {"<module> (/u/a.py:1)", "build (/u/a.py:2)"});
  builder.stacks(7, 10, 20, {"<module> (/u/a.py:1)", "warm (/u/a.py:3)"});
  for (int i = 20; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, {"<module> (/u/a.py:1)", "build (/u/a.py:2)"});
    builder.stacks(7, i + 0.5, i + 1, kKernels);
  }
  const Finding start = explain(builder.build()).findings.front();
  EXPECT_THAT(start.title, HasSubstr("Start-up"));
  EXPECT_THAT(start.evidence, Contains(HasSubstr("build (a.py) 50 %")));
  EXPECT_THAT(start.evidence, Not(Contains(HasSubstr("kernels ran beside"))));
}

// The interpreter goes, and a look at it finds a destructor.
TEST(NamedCode, AnEndInWhichHardlyAnyCodeIsSeenIsNoGpuThatIsKept) {
  const auto ends = [](double seen) {
    RecordingBuilder builder(20, 0.2);
    builder.gpu(0, [](double t) { return t <= 18.4 ? 0.99 : 0.0; }).process(7, 1, 0, 20, 0.9).context(7, 0, 0, 20);
    builder.stacks(7, 0, 18.4, kKernels).stacks(7, 18.4, 18.4 + seen, {"upload (/u/a.py:1)"});
    builder.meta().exit_code = 0;
    return explain(builder.build());
  };
  EXPECT_EQ(find_single(ends(0.2), Cause::kUnreleasedAfterWork), nullptr);
  EXPECT_NE(find_single(ends(1.5), Cause::kUnreleasedAfterWork), nullptr);
}

// What comes over a connection is no file that a second run finds in memory, though a library's page is read meanwhile.
TEST(NamedCode, WhoWaitsOnAConnectionAndHardlyReadsWaitsForWhatIsFarAway) {
  const auto reads = [](std::int64_t bytes) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.3; }).sleeping_in(WaitChannel::kSocket);
    builder.process({7, 1, 0, 60, 0.02, true, {testing::cell(Metric::kReadBytes, bytes)}}).context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.3, kKernels);
      builder.stacks(7, i + 0.3, i + 1, {"train (/u/a.py:1)", "Store.get (/u/a.py:9)"});
    }
    return explain(builder.build()).findings.front();
  };
  EXPECT_TRUE(reads(5000).from_afar);
  EXPECT_FALSE(reads(5'000'000).from_afar);
}

}  // namespace
}  // namespace headroom
