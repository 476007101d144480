// SPDX-License-Identifier: Apache-2.0
#include "record/reader.h"

#include <algorithm>
#include <filesystem>

#include "record/file_reader.h"

namespace headroom {

std::uint64_t believable_values(const std::string& path) {
  constexpr std::uint64_t kAnyFile = std::uint64_t{1} << 27, kPerByte = 64;
  std::uint64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path + suffix, error);
    if (!error) bytes += size;
  }
  return kAnyFile + kPerByte * bytes;
}

Result<Recording> read_recording(const std::string& path, ReadOptions options) {
  HR_TRY(OpenedFile file, OpenedFile::open(path));
  FileReader reader(options.leave_out);
  const auto read = reader.read(file, path, std::min(options.max_values, believable_values(path)));
  if (!read) return tl::unexpected(within(path, file.explained(read.error())));
  return std::move(reader).take();
}

}  // namespace headroom
