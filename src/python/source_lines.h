// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace headroom::python {

// Which lines of its file the instructions of a code object belong to. CPython has written that in three ways: up to
// 3.9 as Objects/lnotab_notes.txt says, in 3.10 as PEP 626 does, since 3.11 as Objects/locations.md does.
class LineTable {
 public:
  // The piece of source that an instruction was compiled from: from the column `column` of line `line` up to the column
  // `end_column` of line `end_line`. Columns are bytes of UTF-8, the first is 0.
  struct Extent {
    std::int32_t line = 0, end_line = 0, column = 0, end_column = 0;
    bool operator==(const Extent&) const = default;
  };
  // The extent of the instruction at `offset` of a code object of 3.11 or newer, as `table` says. Nothing: it has no
  // columns.
  [[nodiscard]] static std::optional<Extent> extent_at(std::int32_t first_line, std::span<const std::byte> table,
                                                       std::uint64_t offset);

  // `table` is co_lnotab (3.8, 3.9) or co_linetable of a code object that begins at `first_line`. Nothing: its bytes
  // make no sense.
  [[nodiscard]] static std::optional<LineTable> read(int minor, std::int32_t first_line,
                                                     std::span<const std::byte> table);

  // The line of the instruction at `offset`, in bytes from the first one. Nothing: there is none, or it belongs to no
  // line.
  [[nodiscard]] std::optional<std::int32_t> line_at(std::uint64_t offset) const;
  // The size of all instructions together; kOpen where the table does not say (up to 3.9).
  static constexpr std::uint64_t kOpen = UINT64_MAX;
  [[nodiscard]] std::uint64_t code_bytes() const { return parts_.empty() ? 0 : parts_.back().end; }
  [[nodiscard]] std::size_t parts() const { return parts_.size(); }  // of 16 bytes

 private:
  struct Part {
    std::uint64_t end = 0;  // it begins where the one before it ends
    std::int64_t line = 0;  // 0: none
  };
  void add(std::uint64_t end, std::int64_t line);
  std::vector<Part> parts_;
};

// The name of what a piece of source calls, if that is a call: "loss.item" of `loss.item()`, "item" of
// `training.step().item()`, "np.sort" of `np.sort(values[3:], axis=0)`; no argument is in it. "" of everything else.
[[nodiscard]] std::string name_of_call(std::string_view source);

// The source files of a process of our user, as it ran them: what was written since it began, or since the process
// began that it was forked from, is not known.
class SourceFiles {
 public:
  explicit SourceFiles(std::int64_t pid) : pid_(pid) {}
  // The name that the piece of source calls (name_of_call); "" where that is not known.
  [[nodiscard]] std::string call_at(const std::string& file, const LineTable::Extent& extent);

 private:
  [[nodiscard]] const std::string& text_of(const std::string& file);
  [[nodiscard]] std::string read(const std::string& file) const;
  std::int64_t pid_;
  std::map<std::string, std::string> texts_;
  std::size_t bytes_ = 0;  // of all texts
};

}  // namespace headroom::python
