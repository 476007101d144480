// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/sqlite.h"
#include "model/recording.h"

namespace headroom::testing {

// What every recording made of a trace keeps, whatever the trace holds.
inline void check_trace(const Result<Recording>& result) {
  if (!result) {
    HR_CHECK(!result.error().what.empty(), "an error without words");
    return;
  }
  const RecordingMeta& meta = result->meta;
  HR_CHECK(meta.start <= meta.end && result->tracks.size() == result->sources.size(), "a recording without time");
  for (const Track& track : result->tracks) {
    for (std::size_t i = 1; i < track.at.size(); ++i) HR_CHECK(track.at[i - 1] <= track.at[i], "rows in order");
    for (const Column& column : track.columns)
      HR_CHECK(column.values.size() == track.at.size(), "a column of another length");
    for (std::size_t i = 0; i < track.lists.size(); ++i) {
      HR_CHECK(track.lists[i].list < result->lists.size(), "a list that is not there");
      HR_CHECK(i == 0 || track.lists[i - 1].at <= track.lists[i].at, "list rows in order");
    }
  }
}

// What `nsys export --type sqlite` writes of a small program, in memory.
inline Database nsys_database() {
  Database database = *Database::open(":memory:", Access::kReadWrite);
  // Process 77, thread 78.
  constexpr const char* kTables = R"(
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
    INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce'), (3, 'cudaLaunchKernel_v7000'),
      (4, 'cudaDeviceSynchronize_v3020'), (5, 'train');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
      streamId INT NOT NULL, correlationId INT, globalPid INT, shortName INT NOT NULL);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
      (5000, 7000, 0, 7, 1, 77 << 24, 1), (6000, 8000, 0, 20, 2, 77 << 24, 1), (10000, 14000, 0, 7, 3, 77 << 24, 2);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
      correlationId INT, globalPid INT, bytes INT NOT NULL, copyKind INT NOT NULL, srcKind INT, dstKind INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (15000, 16000, 0, 4, 77 << 24, 100, 1, 0, 2);
    CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
    INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
      (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
      correlationId INT, globalPid INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (17000, 17500, 0, 5, 77 << 24);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT, globalTid INT,
      correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 2000, 0, (77 << 24) | 78, 1, 3, 0),
      (2100, 2200, 0, (77 << 24) | 78, 2, 3, 0), (9000, 9500, 0, (77 << 24) | 78, 3, 3, 0),
      (18000, 19000, 0, (77 << 24) | 78, 6, 4, 0);
    CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT, globalTid INT, textId INT);
    INSERT INTO NVTX_EVENTS VALUES (1000, 19000, 59, NULL, (77 << 24) | 78, 5), (3000, 4000, 59, 'load', (77 << 24) | 78, NULL);
    CREATE TABLE TARGET_INFO_GPU (id INT NOT NULL, name TEXT, busLocation TEXT NOT NULL, totalMemory INT NOT NULL,
      uuid TEXT, cuDevice INT);
    INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100', '0000:07:00.0', 42297524224,
      '01234567-89ab-cdef-0123-456789abcdef', 0);
    CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT, localTime TEXT);
    INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
  )";
  if (!database.execute(kTables)) database.close();
  return database;
}

}  // namespace headroom::testing
