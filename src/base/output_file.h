// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace headroom {

// A file that people named to be written. A regular one is replaced whole, with its mode, where its links lead to: it
// is written under a temporary name beside it, and is at its place once kept. What is no regular file (a device, a
// pipe, this process's own output) is written as it is.
class OutputFile {
 public:
  [[nodiscard]] static Result<OutputFile> open(const std::string& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  OutputFile(const OutputFile&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] Result<void> keep();

 private:
  OutputFile(Fd fd, std::string target) : fd_(std::move(fd)), target_(std::move(target)) {}
  Fd fd_;
  std::string target_;     // "" where it is written in place
  std::string temporary_;  // "" once kept
  bool made_ = false;      // the target, too: a link led to nothing
};

// Whether an answer may be written there, asked before the work begins; makes nothing. kInvalidInput also where it
// would take the place of a database: a recording, a study.
[[nodiscard]] Result<void> can_write(const std::string& path);

}  // namespace headroom
