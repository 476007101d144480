// SPDX-License-Identifier: Apache-2.0
#include "serve/route.h"

#include <gtest/gtest.h>

namespace headroom::serve {
namespace {

using What = Route::What;

TEST(RouteTest, PathsAreKnownOrNothing) {
  EXPECT_EQ(route_of("/").what, What::kFile);
  EXPECT_EQ(route_of("/metrics").what, What::kMetrics);
  EXPECT_EQ(route_of("/metrics/dcgm").what, What::kDcgmMetrics);
  EXPECT_EQ(route_of("/api/events").what, What::kEvents);
  const Route view = route_of("/api/recordings/r0a_-Z/view");
  EXPECT_EQ(view.what, What::kView);
  EXPECT_EQ(view.key, "r0a_-Z");
  EXPECT_EQ(route_of("/api/recordings/r1/trace").what, What::kTrace);
  EXPECT_EQ(route_of("/api/recordings/r1/compare").what, What::kComparison);
  EXPECT_EQ(route_of("/api/batches/b1").what, What::kBatch);
  EXPECT_EQ(route_of("/api/studies/s1").what, What::kStudy);
  EXPECT_EQ(route_of("/api/studies/s1/report").what, What::kStudyReport);
  for (const char* path :
       {"", "x", "//", "/index.html", "/api", "/api/", "/api/overview/", "/api/recordings/r1", "/api/recordings//view",
        "/api/recordings/../view", "/api/recordings/r1/view/", "/API/overview", "/api/recordings/r1/nothing",
        "/api/recordings/%72/view", "/api/batches/b1/view", "/api/studies/s1/view", "/api/batches/"})
    EXPECT_EQ(route_of(path).what, What::kNothing) << path;
  EXPECT_EQ(route_of("/api/batches/" + std::string(64, 'k')).what, What::kBatch);
  EXPECT_EQ(route_of("/api/batches/" + std::string(65, 'k')).what, What::kNothing);
}

ViewQuery query_of(std::string text, bool good = true) {
  Request request;
  request.query = std::move(text);
  std::string problem;
  const ViewQuery query = view_query(request, problem);
  EXPECT_EQ(problem.empty(), good) << request.query << ": " << problem;
  return query;
}

TEST(RouteTest, WhatAViewIsAskedForIsInBounds) {
  EXPECT_EQ(query_of(""), ViewQuery{});
  const ViewQuery query = query_of("begin=0&end=5000000000&bins=2000&series_bins=1");
  EXPECT_EQ(query.begin, 0);
  EXPECT_EQ(query.end, 5 * kSecond);
  EXPECT_EQ(query.bins, 2000);
  EXPECT_EQ(query.series_bins, 1);
  for (const char* bad : {"bins=0", "bins=2001", "bins=", "bins=1.5", "begin=-1", "begin=x", "end=99999999999999999999",
                          "begin=5&end=5", "begin=6&end=5", "series_bins=-3"})
    query_of(bad, false);
}

TEST(RouteTest, OpenMetricsIsForWhoAsks) {
  for (const char* accept : {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
                             "text/plain, application/openmetrics-text; version=1.0.0; charset=utf-8",
                             "application/openmetrics-text", "APPLICATION/OPENMETRICS-TEXT;q=0.1"})
    EXPECT_TRUE(takes_openmetrics(accept)) << accept;
  for (const char* accept : {"", "*/*", "text/plain;version=0.0.4", "application/openmetrics-text;version=0.0.1;q=0.75",
                             "application/openmetrics-text;version=2.0.0", "application/openmetrics-text;q=0", ",;,"})
    EXPECT_FALSE(takes_openmetrics(accept)) << accept;
}

}  // namespace
}  // namespace headroom::serve
