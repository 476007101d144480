// SPDX-License-Identifier: Apache-2.0
// Any bytes that SQLite takes for a database are studies whose rows belong together, or an error that says something.
#include <cstddef>
#include <cstdint>

#include "storage/sqlite_storage.h"
#include "storage/testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto database = headroom::Database::open(":memory:", headroom::Access::kReadWrite);
  HR_CHECK(database, "a database in memory");
  auto* const bytes = static_cast<unsigned char*>(sqlite3_malloc64(size + 1));
  std::copy_n(data, size, bytes);
  if (sqlite3_deserialize(database->raw(), "main", bytes, static_cast<sqlite3_int64>(size),
                          static_cast<sqlite3_int64>(size), SQLITE_DESERIALIZE_FREEONCLOSE) != SQLITE_OK)
    return 0;
  database->limit_steps(1 << 22);
  const auto content = headroom::read_sqlite_tables({}, *database, headroom::kSecond, headroom::Pauses::kNo);
  if (!content) {
    HR_CHECK(!content.error().what.empty(), "an error without words");
    return 0;
  }
  for (const headroom::Study& study : content->studies) headroom::testing::check_study(study);
  return 0;
}
