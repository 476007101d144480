// SPDX-License-Identifier: Apache-2.0
// Any bytes that SQLite takes for a database are a recording whose rows are in order, or an error that says something.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "import/trace.h"
#include "import/trace_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto database = headroom::Database::open(":memory:", headroom::Access::kReadWrite);
  HR_CHECK(database, "a database in memory");
  auto* const bytes = static_cast<unsigned char*>(sqlite3_malloc64(size + 1));
  std::copy_n(data, size, bytes);
  if (sqlite3_deserialize(database->raw(), "main", bytes, static_cast<sqlite3_int64>(size),
                          static_cast<sqlite3_int64>(size), SQLITE_DESERIALIZE_FREEONCLOSE) != SQLITE_OK)
    return 0;
  database->limit_steps(1 << 22);
  headroom::testing::check_trace(headroom::read_nsys("report", *database));
  return 0;
}
