// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "bench/synthetic.h"

struct sqlite3;

namespace headroom::bench {

// The plain alternatives to a recording: tables as anybody would make them, with SQLite's defaults and keys that suit
// the query, which then reads every row once, in the order in which it lies, and sorts nothing.
enum class Layout {
  kRowPerInstant,  // (gpu, t, 20 columns)
  kRowPerValue,    // (gpu, metric, t, value)
};

// Any error ends the program: a benchmark has nobody to tell.
class RowTable {
 public:
  RowTable(const std::string& path, Layout layout, const SyntheticBox& box);
  ~RowTable();
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  // The mean of every metric of every GPU, by one SELECT avg(...): [gpu * 20 + metric].
  [[nodiscard]] std::vector<double> means() const;

 private:
  void exec(const std::string& sql) const;
  void fill_rows_per_instant(const SyntheticBox& box) const;
  void fill_rows_per_value(const SyntheticBox& box) const;
  Layout layout_;
  sqlite3* db_ = nullptr;
};

}  // namespace headroom::bench
