// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/recording.h"

namespace headroom {

// What a log lost or had mended, counted by kind; the detail is that of the first occurrence.
class LogLosses {
 public:
  // `detail` is called for the first occurrence only: most logs that have an oddity have it in every row.
  template <class Detail>
  void add(std::string_view what, Severity severity, std::int64_t count, const Detail& detail) {
    if (count <= 0) return;
    const auto known = std::find_if(losses_.begin(), losses_.end(), [&](const Loss& l) { return l.what == what; });
    if (known != losses_.end())
      known->count += count;
    else
      losses_.push_back({std::string(what), count, severity, detail()});
  }
  [[nodiscard]] std::int64_t count(std::string_view what) const {
    const auto known = std::find_if(losses_.begin(), losses_.end(), [&](const Loss& l) { return l.what == what; });
    return known == losses_.end() ? 0 : known->count;
  }
  [[nodiscard]] const std::vector<Loss>& all() const { return losses_; }

 private:
  std::vector<Loss> losses_;
};

}  // namespace headroom
