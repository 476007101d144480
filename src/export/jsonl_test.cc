// SPDX-License-Identifier: Apache-2.0
#include "import/jsonl.h"

#include <gtest/gtest.h>

#include "base/decimal.h"
#include "export/jsonl.h"
#include "import/jsonl_value.h"
#include "record/random_recording.h"

namespace headroom {
namespace {

constexpr std::string_view kSmall =
    R"({"recording":1,"meta":{"origin":"record","command":["python","train.py"],"start_ns":0,"end_ns":3000000000}})"
    "\n"
    R"({"source":0,"kind":"gpu","key":"GPU-1","attrs":{"index":0,"given":true}})"
    "\n"
    R"({"row":[0,1000000000,{"power_watts":590,"gpu_util_ratio":0.114,"fan_ratio":"not_supported"}]})"
    "\n"
    R"({"event":"job_start","at":1500000000,"source":0,"attrs":{"pid":"7"}})"
    "\n"
    R"({"row":[0,2000000000,{"power_watts":20.5}]})"
    "\n"
    R"({"loss":"late_tick","count":2,"severity":"notice"})"
    "\n";

TEST(Jsonl, RandomRecordingsComeBackWhole) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Recording original = testing::RandomRecording(seed).make(60);
    const auto back = read_jsonl(to_jsonl(original));
    ASSERT_TRUE(back) << back.error().what;
    ASSERT_EQ(*back, original) << "seed " << seed << "\n" << to_jsonl(original);
  }
}

TEST(Jsonl, APersonCanWriteIt) {
  const auto recording = read_jsonl(kSmall);
  ASSERT_TRUE(recording) << recording.error().what;
  EXPECT_EQ(recording->sources.at(0).attrs, (Attrs{{"index", "0"}, {"given", "true"}}));
  const Track& track = recording->tracks.at(0);
  EXPECT_EQ(track.find(Metric::kPower)->values, (std::vector<std::int64_t>{590'000, 20'500}));
  EXPECT_EQ(track.find(Metric::kFan)->at(0).error(), Absent::kNotSupported);
  EXPECT_EQ(track.find(Metric::kFan)->at(1).error(), Absent::kNotSampled);
  EXPECT_EQ(recording->meta.command, (std::vector<std::string>{"python", "train.py"}));
}

TEST(Jsonl, ErrorsSayWhere) {
  const auto what = [](std::string_view lines) {
    const auto read = read_jsonl(std::string("{\"recording\":1}\n{\"source\":0,\"kind\":\"gpu\",\"key\":\"G\"}\n") +
                                 std::string(lines));
    return read ? std::string("no error") : read.error().what;
  };
  EXPECT_EQ(what(R"({"row":[0,5,{"power_watts":1.2345}]})"),
            "line 3, column 14: 1.2345 watts cannot be stored: power_watts keeps 3 decimals and 63 bits");
  EXPECT_EQ(what(R"({"row":[1,5,{}]})"), "line 3, column 1: there is no source '1' above this line");
  EXPECT_EQ(what("{\"row\":[0,5,{}]}\n{\"row\":[0,4,{}]}"),
            "line 4, column 2: rows of a source must be in order of time");
  EXPECT_EQ(what(R"({"row":[0,5,{"power_watts":"broken"}]})"),
            "line 3, column 14: 'broken' is no reason why a value is absent");
  EXPECT_EQ(what("{\"list\":0,\"texts\":[]}\n{\"list_row\":[0,5,0,2147483648]}"),
            "line 4, column 2: a value is a number of 32 bits, and 2147483648 is not");
  EXPECT_EQ(what(R"({"row":)").substr(0, 16), "line 3, column 8");
  EXPECT_EQ(read_jsonl("").error().what, "line 1, column 1: the text is empty");
  EXPECT_EQ(read_jsonl("\n{\"others\":[1,2").error().what,
            "line 2, column 1: the first line must be {\"recording\":1,\"meta\":{…}}");
  EXPECT_EQ(read_jsonl("{\"recording\":2}").error().code, Errc::kUnsupported);
}

TEST(Jsonl, WhatIsUnknownIsCounted) {
  const auto read = read_jsonl(
      "{\"recording\":1}\n{\"source\":0,\"kind\":\"tpu\",\"key\":\"T\"}\n{\"row\":[0,1,{\"x\":1}]}\n"
      "{\"source\":1,\"kind\":\"gpu\",\"key\":\"G\",\"parent\":0}\n{\"row\":[1,1,{\"warp_factor\":9,\"power_watts\":1}]"
      "}\n"
      "{\"poem\":\"x\"}\n");
  ASSERT_TRUE(read) << read.error().what;
  ASSERT_EQ(read->losses.size(), 3U);
  EXPECT_EQ(read->losses[0].what, "unknown_source");
  EXPECT_EQ(read->losses[1].what, "unknown_metric");
  EXPECT_EQ(read->losses[2].what, "unknown_line");
  EXPECT_EQ(read->sources.at(0).key, "G");
  EXPECT_EQ(read->sources[0].parent, kNoSource);
}

TEST(Jsonl, CutAnywhereItNeverCrashesAndNeverInvents) {
  const auto whole = read_jsonl(kSmall);
  for (std::size_t size = 0; size < kSmall.size(); ++size) {
    const auto part = read_jsonl(kSmall.substr(0, size));
    if (!part || part->tracks.empty()) continue;
    EXPECT_LE(part->tracks[0].at.size(), whole->tracks[0].at.size());
  }
}

TEST(Decimal, IsExactBothWays) {
  for (const std::int64_t stored :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{590'000}, INT64_MAX, INT64_MIN})
    for (const int exp10 : {0, 2, 3, 4, 9}) EXPECT_EQ(parse_decimal(decimal(stored, exp10), exp10), stored);
  EXPECT_EQ(parse_decimal("2e3", 3), 2'000'000);
  EXPECT_EQ(parse_decimal("1.50e-2", 4), 150);
  EXPECT_EQ(parse_decimal("0.0000000000", 0), 0);
  EXPECT_FALSE(parse_decimal("0.5", 0));
  EXPECT_FALSE(parse_decimal("9223372036854775808", 0));
}

}  // namespace
}  // namespace headroom
