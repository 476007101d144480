// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string_view>

#include "base/result.h"

namespace headroom {

// Where an export goes, a block at a time: a file, a pipe, a string.
using Output = std::function<Result<void>(std::string_view)>;

// Collects small pieces and passes them on in blocks of about 64 KiB.
class BlockOutput {
 public:
  explicit BlockOutput(const Output& output) : output_(output) {}
  std::string& text() { return text_; }
  // After every line.
  [[nodiscard]] Result<void> line_done() { return text_.size() < kBlock ? Result<void>() : flush(); }
  [[nodiscard]] Result<void> flush() {
    auto written = output_(text_);
    text_.clear();
    return written;
  }

 private:
  static constexpr std::size_t kBlock = 65'536;
  const Output& output_;
  std::string text_;
};

}  // namespace headroom
