// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyze/gpu_works.h"
#include "import/trace.h"
#include "import/trace_testing.h"
#include "model/entities.h"

namespace headroom {
namespace {

using testing::nsys_database;

Nanos busy_in(const Recording& recording) {
  Nanos sum = 0;
  for (const SourceId gpu : recording.all(SourceKind::kGpu))
    for (const WorkStretch& stretch : work_stretches(recording, gpu))
      if (stretch.busy()) sum += stretch.end - stretch.begin;
  return sum;
}

TEST(Nsys, TablesBecomeTheSameRecordingAsATrace) {
  Database database = nsys_database();
  const auto r = read_nsys("report.sqlite", database);
  ASSERT_TRUE(r) << r.error().what;
  EXPECT_EQ(r->meta.origin, "import:nsys");
  EXPECT_EQ(r->meta.start, 1'700'000'000'000'001'000);
  EXPECT_EQ(busy_in(*r), 3'000 + 4'000) << "two streams overlap by 1 us";
  const Device device = device_of(r->sources[0]);
  EXPECT_EQ(device.name, "NVIDIA A100");
  EXPECT_EQ(device.uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
  EXPECT_TRUE(r->find(SourceKind::kCallThread, "77/0/78"));
  const auto marks = r->find(SourceKind::kMarks, "77/0/78/nvtx");
  ASSERT_TRUE(marks);
  const Track& track = r->tracks[static_cast<std::size_t>(*marks)];
  ASSERT_FALSE(track.lists.empty());
  EXPECT_EQ(r->texts[r->lists[track.lists[0].list][0]], "train");
  bool pageable = false, talks = false;
  for (const WorkStretch& stretch : work_stretches(*r, r->all(SourceKind::kGpu).front())) {
    pageable |= stretch.has(GpuWork::kPageableToDevice);
    talks |= stretch.has(GpuWork::kCommunication);
  }
  EXPECT_TRUE(pageable);
  EXPECT_TRUE(talks);
}

TEST(Nsys, TablesAndColumnsThatAreMissingAreNoError) {
  auto database = Database::open(":memory:", Access::kReadWrite);
  ASSERT_TRUE(database);
  ASSERT_TRUE(
      database->execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT);"
                        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0), (NULL, 5, 0), (30, 20, 0);"));
  const auto r = read_nsys("report.sqlite", *database);
  ASSERT_TRUE(r) << r.error().what;
  EXPECT_EQ(busy_in(*r), 10);
  ASSERT_EQ(r->losses.size(), 1U);
  EXPECT_EQ(r->losses[0].count, 2);
}

TEST(Nsys, GraphsThatWereTracedAsWholesAreSaid) {
  Database database = nsys_database();
  ASSERT_TRUE(
      database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT);"
                       "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (20000, 21000, 0);"));
  const auto r = read_nsys("report.sqlite", database);
  ASSERT_TRUE(r);
  EXPECT_EQ(busy_in(*r), 8'000);
  ASSERT_EQ(r->losses.size(), 1U);
  EXPECT_EQ(r->losses[0].what, "graphs_as_kernels");
}

TEST(Nsys, MarksAndNamesOfNvtxAreNotLostAndRangesThatWereNotClosedAreSaid) {
  Database database = nsys_database();
  ASSERT_TRUE(
      database.execute("INSERT INTO NVTX_EVENTS VALUES (2000, NULL, 75, 'CUBLAS', (77 << 24) | 78, NULL);"
                       "INSERT INTO NVTX_EVENTS VALUES (2000, NULL, 34, 'a mark', (77 << 24) | 78, NULL);"));
  ASSERT_TRUE(read_nsys("report.sqlite", database)->losses.empty());
  ASSERT_TRUE(
      database.execute("INSERT INTO NVTX_EVENTS VALUES (2000, NULL, 59, 'never popped', (77 << 24) | 78, NULL);"
                       "INSERT INTO NVTX_EVENTS VALUES (2500, NULL, 60, NULL, (77 << 24) | 78, 5);"));
  const auto r = read_nsys("report.sqlite", database);
  ASSERT_TRUE(r);
  ASSERT_EQ(r->losses.size(), 1U);
  EXPECT_EQ(r->losses[0].what, "open_range");
  EXPECT_EQ(r->losses[0].severity, Severity::kNotice) << "nothing of the GPU is lost";
  EXPECT_EQ(r->losses[0].count, 2);
  EXPECT_NE(r->losses[0].detail.find("'never popped'"), std::string::npos) << r->losses[0].detail;
  EXPECT_EQ(r->meta.extra.at("operators"), "not traced");
}

TEST(Nsys, ARangeThatGoesOnAfterAnotherWithinItIsCountedOnce) {
  Database database = nsys_database();
  ASSERT_TRUE(database.execute(
      "DELETE FROM NVTX_EVENTS;"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4) "
      "INSERT INTO NVTX_EVENTS SELECT 2000 + 2000 * i, 4000 + 2000 * i, 59, 'iteration', (77 << 24) | 78, "
      "NULL FROM n UNION ALL SELECT 2500 + 2000 * i, 3000 + 2000 * i, 59, 'exchange', (77 << 24) | 78, "
      "NULL FROM n;"));
  const auto r = read_nsys("report.sqlite", database);
  ASSERT_TRUE(r) << r.error().what;
  const auto marks = r->find(SourceKind::kMarks, "77/0/78/nvtx");
  ASSERT_TRUE(marks);
  std::vector<std::pair<std::size_t, std::int32_t>> open;  // how deep, and for the how many-th time
  for (const ListRow& row : r->tracks[static_cast<std::size_t>(*marks)].lists)
    open.emplace_back(r->lists[row.list].size(), row.value);
  ASSERT_GE(open.size(), 15U);
  for (std::size_t i = 0; i < 15; ++i)
    EXPECT_EQ(open[i], std::pair(i % 3 == 1 ? std::size_t{2} : std::size_t{1}, static_cast<std::int32_t>(1 + i / 3)))
        << i;
}

TEST(Nsys, CopiesBetweenGpusAreNoneWithinOne) {
  auto database = Database::open(":memory:", Access::kReadWrite);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, copyKind INT, srcDeviceId INT, "
      "dstDeviceId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10, 20, 0, 10, 0, 1), (30, 40, 0, 8, 0, 0), (50, 60, 0, 8, 1, "
      "0), "
      "(70, 80, 0, 1, NULL, 0);"));
  const auto r = read_nsys("report.sqlite", *database);
  ASSERT_TRUE(r) << r.error().what;
  std::vector<GpuWork> seen;
  for (const WorkStretch& stretch : work_stretches(*r, r->all(SourceKind::kGpu).front()))
    for (const GpuWorkInfo& work : kGpuWorks)
      if (stretch.has(work.id)) seen.push_back(work.id);
  EXPECT_EQ(seen,
            (std::vector{GpuWork::kCopyToPeer, GpuWork::kCopyOnDevice, GpuWork::kCopyToPeer, GpuWork::kCopyToDevice}));
}

TEST(Nsys, WhetherAnythingIsOfPythonIsSaid) {
  for (const auto& [name, python] :
       {std::pair{"stencil", false}, {"/usr/bin/python3.11", true}, {"at::native::add", true}}) {
    Database database = nsys_database();
    ASSERT_TRUE(database.execute(fmt::format("INSERT INTO StringIds VALUES (999, '{}')", name).c_str()));
    EXPECT_EQ(read_nsys("report.sqlite", database)->meta.extra.contains("python"), !python) << name;
  }
}

TEST(Nsys, WhetherTheHostsMemoryIsPinnedInAllCopiesIsKept) {
  for (const bool pinned : {true, false}) {
    Database database = nsys_database();  // which copies from pageable memory
    ASSERT_TRUE(
        database.execute("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned');"
                         "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (15000, 16000, 0, 4, 77 << 24, 100, 2, 2, 1)"));
    if (pinned) {
      ASSERT_TRUE(database.execute("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind = 1 WHERE copyKind = 1"));
    }
    const auto r = read_nsys("report.sqlite", database);
    ASSERT_TRUE(r) << r.error().what;
    EXPECT_EQ(r->meta.extra.contains("host_copies"), pinned);
  }
  Database unknown = nsys_database();
  ASSERT_TRUE(unknown.execute("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind = 1"));
  EXPECT_FALSE(read_nsys("report.sqlite", unknown)->meta.extra.contains("host_copies")) << "1 of what, nothing says";
}

TEST(Nsys, CallsThatWereNotTracedAreSaid) {
  Database database = nsys_database();
  EXPECT_FALSE(read_nsys("report.sqlite", database)->meta.extra.contains("calls"));
  ASSERT_TRUE(database.execute("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME"));
  EXPECT_EQ(read_nsys("report.sqlite", database)->meta.extra.at("calls"), "not traced");
}

TEST(Nsys, WithoutWorkOfAGpuThereIsNothingToImport) {
  auto database = Database::open(":memory:", Access::kReadWrite);
  ASSERT_TRUE(database->execute("CREATE TABLE NVTX_EVENTS (start INT, end INT, globalTid INT, text TEXT)"));
  const auto r = read_nsys("report.sqlite", *database);
  ASSERT_FALSE(r);
  EXPECT_FALSE(r.error().hint.empty());
}

TEST(Nsys, AViewIsNotComputed) {
  auto database = Database::open(":memory:", Access::kReadWrite);
  ASSERT_TRUE(database->execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 start, 2 end, 0 deviceId"));
  EXPECT_FALSE(read_nsys("report.sqlite", *database));
}

// Read for every kernel, the name would be a terabyte.
TEST(Nsys, AnEndlessNameIsReadOnceAndCut) {
  Database database = nsys_database();
  ASSERT_TRUE(database.execute(
      "INSERT INTO StringIds VALUES (9, 'cuda' || printf('%.*c', 10000000, 'x'));"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 20000 + 10 * i, 20005 + 10 * i, 0, 7, 100 + i, 77 << 24, 9 FROM n;"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (30000000, 39000000, 0, (77 << 24) | 78, 7, 9, 0);"
      "INSERT INTO NVTX_EVENTS VALUES (2000, 3000, 59, printf('%.*c', 100000, 'y'), (77 << 24) | 78, 5);"));
  const auto r = read_nsys("report.sqlite", database);
  ASSERT_TRUE(r) << r.error().what;
  EXPECT_EQ(busy_in(*r), 7'000 + 100'000 * 5);
  std::size_t longest = 0;
  for (const std::string& text : r->texts) longest = std::max(longest, text.size());
  EXPECT_EQ(longest, 300U);
  EXPECT_TRUE(r->losses.empty());
}

TEST(Nsys, NamesBeyondTheBoundAreOtherNamesAndSaid) {
  Database database = nsys_database();
  ASSERT_TRUE(
      database.execute("WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) "
                       "INSERT INTO StringIds SELECT i, printf('%.*c', 300, 'x') || i FROM n;"
                       "INSERT INTO NVTX_EVENTS VALUES (2000, 17000, 59, NULL, (77 << 24) | 78, 199999);"));
  const auto r = read_nsys("report.sqlite", database);
  ASSERT_TRUE(r) << r.error().what;
  ASSERT_EQ(r->losses.size(), 1U);
  EXPECT_EQ(r->losses[0].what, "column_not_kept");
  EXPECT_NE(std::find(r->texts.begin(), r->texts.end(), "other names"), r->texts.end());
  EXPECT_NE(std::find(r->texts.begin(), r->texts.end(), "train"), r->texts.end()) << "what came before has its name";
}

}  // namespace
}  // namespace headroom
