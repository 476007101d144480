// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/resource.h>

#include <array>

#include "base/fd.h"

namespace headroom::batch {

// This process may open as many files as the hard limit allows, for as long as this lives; what it starts may not: a
// program that sees a limit of a million may walk through all of them.
class OpenFiles {
 public:
  OpenFiles() {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
    raised_ = before_;
    raised_.rlim_cur = before_.rlim_max;
    changed_ = before_.rlim_cur != before_.rlim_max && ::setrlimit(RLIMIT_NOFILE, &raised_) == 0;
  }
  ~OpenFiles() {
    if (changed_) ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

  // What `start` returns, with the limit as it was. Files that are open stay open.
  template <class Start>
  auto as_before(const Start& start) const {
    if (changed_) ::setrlimit(RLIMIT_NOFILE, &before_);
    auto started = start();
    if (changed_) ::setrlimit(RLIMIT_NOFILE, &raised_);
    return started;
  }

 private:
  rlimit before_{}, raised_{};
  bool changed_ = false;
};

// Descriptors for a start, where other parts of this process (the recorder keeps files of /proc open) take all they
// can.
class SpareFiles {
 public:
  SpareFiles() { take(); }
  void take() {
    for (Fd& file : files_)
      if (!file) file = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  void give() {
    for (Fd& file : files_) file.reset();
  }

 private:
  std::array<Fd, 2> files_;
};

}  // namespace headroom::batch
