// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/time.h"
#include "python/line_table.h"

namespace headroom::python {

// The name of what a piece of source calls, if that is a call: "loss.item" of `loss.item()`, "item" of
// `training.step().item()`, "np.sort" of `np.sort(values[3:], axis=0)`; no argument is in it. "" of everything else.
[[nodiscard]] std::string name_of_call(std::string_view source);

// The source files of a process of our user, as it ran them: what was written since it began, or since the process
// began that it was forked from, is not known.
class SourceFiles {
 public:
  explicit SourceFiles(std::int64_t pid) : pid_(pid) {}
  // What the piece of source calls (name_of_call); "" where that is not known.
  [[nodiscard]] std::string call_at(const std::string& file, const LineTable::Extent& extent);

 private:
  [[nodiscard]] const std::string& text_of(const std::string& file);
  [[nodiscard]] std::string read(const std::string& file) const;
  std::int64_t pid_;
  std::map<std::string, std::string> texts_;
  std::size_t bytes_ = 0;  // of all texts
};

}  // namespace headroom::python
