// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "base/database_copy.h"
#include "base/result.h"
#include "base/sqlite.h"

namespace headroom {

// A recording opened for reading, wherever it lies: being written, left by a crash, closed, in a directory that may not
// be written to, on read-only media. Nothing of it is ever changed.
class OpenedFile {
 public:
  [[nodiscard]] static Result<OpenedFile> open(const std::string& path);
  OpenedFile(OpenedFile&& other) noexcept = default;
  OpenedFile& operator=(OpenedFile&& other) noexcept = default;
  [[nodiscard]] Database& database() { return database_; }
  // What is missing of a file that was cut, in words; "" of a whole one.
  [[nodiscard]] const std::string& cut() const { return cut_; }
  // What came of reading it: of a file that was cut, that it was cut.
  [[nodiscard]] Error explained(Error error) const;

 private:
  OpenedFile() = default;
  [[nodiscard]] Result<void> check_format(const std::string& path);
  [[nodiscard]] std::string instead_of(const std::string& path);
  [[nodiscard]] std::string as_csv(const std::string& path);
  [[nodiscard]] Result<void> check_contents(const std::string& path);
  std::optional<DatabaseCopy> copy_;  // where the file had to be copied to be read
  Database database_;
  std::string cut_;
};

}  // namespace headroom
