// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace headroom {

// A file that people named to be written. A regular one is replaced whole, with its mode, where its links lead to: it
// is written under a temporary name beside it, and is at its place once kept. What is no regular file (a device, a
// pipe, this process's own output or another of its open files) is written as it is; a FIFO is waited for a moment.
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

// Which files an answer may take the place of: earlier answers of its own, which their first bytes tell.
struct MayReplace {
  std::string writer;              // for people: "headroom plan"
  std::vector<std::string> marks;  // how its answers begin, blanks aside; none: nothing in them says whose they are
  bool all = false;                // --force
};

// Whether an answer may be written there, asked before the work begins; makes nothing. kInvalidInput also where a file
// is there that it may not replace. A database (a recording, a study) is never replaced.
[[nodiscard]] Result<void> can_write(const std::string& path, const MayReplace& may);

}  // namespace headroom
