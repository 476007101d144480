// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Columns of several GPUs in one row, "gpu0_util" or the same names again and again: each row is one of every GPU, of
// these cells.
struct GpuOfRow {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1), kIndexCell = kNone - 1, kHostCell = kNone - 2;
  std::string index, host;         // host: where the names of the columns begin with it
  std::vector<std::size_t> cells;  // by column; kNone: this GPU has no such; kIndexCell: its index; kHostCell: its host
};
struct ColumnsPerGpu {
  std::vector<std::string_view> names;  // of the columns of one GPU
  std::vector<GpuOfRow> gpus;           // empty: a row is about one GPU
  std::set<std::string_view> left_out;  // of `names`: no word says which GPU they are about, or of another run
  std::string other_runs;  // in words, which runs those are, and how they are read instead; "": of one run, or of none
};
// "node01_gpu0_util": a host in front of a column of one GPU. A host has a number in its name, which "max_gpu0_util"
// has not. Nothing of other names.
struct OfHost {
  std::string_view host, name;  // "node01", "gpu0_util"
};
[[nodiscard]] std::optional<OfHost> of_host(std::string_view name);

[[nodiscard]] ColumnsPerGpu columns_per_gpu(std::vector<std::string_view> names);

}  // namespace headroom
