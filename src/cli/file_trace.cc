// SPDX-License-Identifier: Apache-2.0
#include "cli/file_trace.h"

#include <sys/stat.h>

#include "base/time.h"

namespace headroom::cli {

FileTrace trace_of(const std::string& path) {
  struct stat file {
  }, log{};
  const bool has_file = ::stat(path.c_str(), &file) == 0, has_log = ::stat((path + "-wal").c_str(), &log) == 0;
  if (!has_file) return {};
  return {static_cast<std::int64_t>(file.st_ino),
          file.st_size,
          file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec,
          has_log ? static_cast<std::int64_t>(log.st_ino) : 0,
          has_log ? log.st_size : 0,
          has_log ? log.st_mtim.tv_sec * kSecond + log.st_mtim.tv_nsec : 0};
}

}  // namespace headroom::cli
