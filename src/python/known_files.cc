// SPDX-License-Identifier: Apache-2.0
#include "python/known_files.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <climits>

namespace headroom::python {

const ElfSymbols* KnownFiles::symbols_of(const Fd& file) {
  constexpr std::size_t kMost = 32;
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return nullptr;
  const Identity identity{info.st_dev, info.st_ino, info.st_size, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
  auto known = std::find_if(files_.begin(), files_.end(), [&](const File& one) { return one.identity == identity; });
  if (known == files_.end()) {
    const ReadAt read = [&](std::uint64_t offset, std::span<std::byte> into) {
      return offset <= INT64_MAX && ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset)) ==
                                        static_cast<ssize_t>(into.size());
    };
    ++files_read_;
    auto symbols = find_symbols(read, kPythonSymbols);
    if (files_.size() == kMost) files_.pop_front();
    files_.push_back({identity, symbols ? std::optional(std::move(*symbols)) : std::nullopt});
    known = std::prev(files_.end());
  }
  return known->symbols ? &*known->symbols : nullptr;
}

}  // namespace headroom::python
