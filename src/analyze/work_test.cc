// SPDX-License-Identifier: Apache-2.0
#include "analyze/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/events.h"

namespace headroom {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

Recording told(const std::vector<double>& values, Nanos end) {
  MemorySink sink;
  for (std::size_t i = 0; i < values.size(); ++i)
    sink.add_event(to_event(events::MetricValue{"val_loss", values[i]}, static_cast<Nanos>(i) * kSecond));
  Recording recording = std::move(sink).take();
  recording.meta.end = end;
  return recording;
}

SaidMetric all_of(const std::vector<double>& values) {
  const Recording recording = told(values, 1000 * kSecond);
  return said_of(recording, {0, recording.meta.end}).metrics.at(0);
}

TEST(Said, AMetricHasItsFirstLastAndBestValue) {
  const SaidMetric loss = all_of({2, 0.5, 1});
  EXPECT_EQ(loss.first, 2);
  EXPECT_EQ(loss.last, 1);
  EXPECT_EQ(loss.lowest, 0.5);
  EXPECT_EQ(loss.highest, 2);
  EXPECT_EQ(loss.values, 3);
  EXPECT_EQ(loss.better, Better::kLower);
  EXPECT_THAT(loss.curve, ElementsAre(2, 0.5, 1));
}

TEST(Said, ManyValuesAreACurveOfTheirMeans) {
  std::vector<double> values;
  for (int i = 0; i < 4800; ++i) values.push_back(i % 2);
  EXPECT_EQ(all_of(values).curve.size(), kMostOfCurve);
  EXPECT_THAT(all_of(values).curve, Each(::testing::DoubleNear(0.5, 1e-9)));
}

TEST(Said, WhatIsNoNumberIsTheLastWordAndNotTheBest) {
  const SaidMetric loss = all_of({2, 0.5, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(loss.last));
  EXPECT_EQ(loss.lowest, 0.5);
  EXPECT_THAT(loss.curve, ElementsAre(2, 0.5));
  EXPECT_TRUE(std::isnan(all_of({std::numeric_limits<double>::quiet_NaN()}).lowest));
}

TEST(Said, ValuesOfSeveralAreNoCourseOfOne) {
  MemorySink sink;
  const SourceId one = sink.add_source({SourceKind::kMarks, "1", kNoSource, {}});
  const SourceId other = sink.add_source({SourceKind::kMarks, "2", kNoSource, {}});
  sink.add_event(to_event(events::MetricValue{"val_loss", 1}, 1, one));
  sink.add_event(to_event(events::MetricValue{"val_loss", 9}, 2, other));
  sink.add_event(to_event(events::MetricValue{"val_loss", 2}, 3, one));
  Recording recording = std::move(sink).take();
  recording.meta.end = 10;
  const SaidMetric loss = said_of(recording, {0, 10}).metrics.at(0);
  EXPECT_EQ(loss.last, 2);
  EXPECT_EQ(loss.values, 1);
}

TEST(Said, TheLastWordsAreReadWhenTheJobHasEnded) {
  const Recording recording = told({3, 2, 1}, 1 * kSecond);
  EXPECT_EQ(said_of(recording, {0, recording.meta.end}).metrics.at(0).last, 1);
  EXPECT_EQ(said_of(recording, {0, kSecond / 2}).metrics.at(0).last, 3) << "of a part of it";
}

}  // namespace
}  // namespace headroom
