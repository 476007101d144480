// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// TOML as people write it: in the order of the file, and with errors that name file, line, column, key and table. What
// is not there is nothing, unless it is needed; what is there and of another type is an error.
namespace headroom {

class TomlTable {
 public:
  [[nodiscard]] static Result<TomlTable> parse(std::string_view text, const std::string& path);

  [[nodiscard]] const std::string& label() const { return label_; }  // "[task.grid]"; "" for the file itself
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] bool is_text(std::string_view key) const;
  [[nodiscard]] bool is_table(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> keys() const;                                // as they stand in the file
  [[nodiscard]] Result<void> only(const std::vector<std::string_view>& known) const;  // no other keys

  [[nodiscard]] Result<std::optional<std::string>> text(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view key, std::int64_t low,
                                                            std::int64_t high) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view key, double low, double high) const;
  [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string> need_text(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> need_integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  [[nodiscard]] Result<double> need_number(std::string_view key, double low, double high) const;
  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const;  // a list, or one text
  // Texts, numbers, truths and dates, as text; a list of them.
  [[nodiscard]] Result<std::string> scalar(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> scalars(std::string_view key) const;
  [[nodiscard]] Result<std::optional<TomlTable>> table(std::string_view key) const;
  [[nodiscard]] Result<std::vector<TomlTable>> tables(std::string_view key) const;  // [[key]], or one [key]

  [[nodiscard]] int line() const;  // of the table
  // "windows.toml:14:11" of a key's value; of the table, "windows.toml:12", where there is no such key.
  [[nodiscard]] std::string place(std::string_view key) const;
  // "windows.toml:14:11: 'retries' in [task] …"
  [[nodiscard]] Error wrong(std::string_view key, std::string_view what, std::string hint) const;

 private:
  struct Node;
  [[nodiscard]] Error of_type(std::string_view key, std::string_view wanted, std::string hint) const;
  [[nodiscard]] Error missing(std::string_view key, std::string_view example) const;
  [[nodiscard]] TomlTable inside(std::string_view key, const void* table, bool listed) const;

  std::shared_ptr<const Node> node_;
  std::string label_;
};

}  // namespace headroom
