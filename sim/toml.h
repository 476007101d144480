// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// TOML as people write it, read with errors that name file, line and column.
namespace headroom::sim {

class TomlTable {
 public:
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] Result<void> only(const std::vector<std::string_view>& known) const;  // no other keys
  // The value of a key that must be there.
  [[nodiscard]] Result<std::string> text(std::string_view key) const;
  [[nodiscard]] Result<double> number(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const;  // an array, or one text
  [[nodiscard]] Result<std::vector<TomlTable>> tables(std::string_view key) const;   // [[key]]; none is not an error
  [[nodiscard]] bool is_text(std::string_view key) const;
  // "faults.toml:3:8" of a key, or of the table where it lacks the key.
  [[nodiscard]] std::string place(std::string_view key) const;
  [[nodiscard]] Error wrong(std::string_view key, std::string_view what, std::string hint) const;

 private:
  friend class TomlFile;
  struct Node;
  std::shared_ptr<const Node> node_;
};

class TomlFile {
 public:
  [[nodiscard]] static Result<TomlFile> parse(std::string_view text, const std::string& path);
  [[nodiscard]] TomlTable root() const { return root_; }

 private:
  TomlTable root_;
};

}  // namespace headroom::sim
