// SPDX-License-Identifier: Apache-2.0
#include "sim/toml.h"

#include "base/strings.h"
#include "base/toml.h"

namespace headroom::sim {

// A table and the document it lives in.
struct TomlTable::Node {
  std::shared_ptr<const toml::table> document;
  const toml::table* table;
  std::string path;
};

namespace {

std::string position(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}:{}", path, source.begin.line, source.begin.column);
}

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "something else";
  }
}

}  // namespace

bool TomlTable::has(std::string_view key) const { return node_->table->contains(key); }
bool TomlTable::is_text(std::string_view key) const { return has(key) && node_->table->get(key)->is_string(); }

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : *node_->table) names.emplace_back(key.str());
  return names;
}

std::string TomlTable::place(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  return position(node_->path, value != nullptr ? value->source() : node_->table->source());
}

Error TomlTable::wrong(std::string_view key, std::string_view what, std::string hint) const {
  return {Errc::kInvalidInput, fmt::format("{}: '{}' {}", place(key), key, what), std::move(hint)};
}

Result<void> TomlTable::only(const std::vector<std::string_view>& known) const {
  for (const auto& [key, value] : *node_->table) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    const auto guess = closest(key.str(), known);
    std::string list;
    for (const auto name : known) list += (list.empty() ? "" : ", ") + std::string(name);
    return fail(Errc::kInvalidInput,
                fmt::format("{}: unknown key '{}'", position(node_->path, key.source()), key.str()),
                guess.empty() ? "known keys: " + list : fmt::format("did you mean '{}'?", guess));
  }
  return {};
}

Result<std::string> TomlTable::text(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return tl::unexpected(wrong(key, "is missing", fmt::format("add {} = \"…\"", key)));
  if (!value->is_string())
    return tl::unexpected(wrong(key, fmt::format("is {}", type_name(*value)), "write a text in quotes"));
  return value->as_string()->get();
}

Result<double> TomlTable::number(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return tl::unexpected(wrong(key, "is missing", fmt::format("add {} = a number", key)));
  if (const auto* integer_value = value->as_integer()) return static_cast<double>(integer_value->get());
  if (const auto* floating = value->as_floating_point()) return floating->get();
  return tl::unexpected(wrong(key, fmt::format("is {}", type_name(*value)), "write a number without quotes"));
}

Result<std::int64_t> TomlTable::integer(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return tl::unexpected(wrong(key, "is missing", fmt::format("add {} = a whole number", key)));
  if (const auto* integer_value = value->as_integer()) return integer_value->get();
  return tl::unexpected(wrong(key, fmt::format("is {}", type_name(*value)), "write a whole number"));
}

Result<bool> TomlTable::boolean(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return tl::unexpected(wrong(key, "is missing", fmt::format("add {} = true or false", key)));
  if (const auto* truth = value->as_boolean()) return truth->get();
  return tl::unexpected(wrong(key, fmt::format("is {}", type_name(*value)), "write true or false"));
}

Result<std::vector<std::string>> TomlTable::texts(std::string_view key) const {
  if (const toml::node* value = node_->table->get(key); value != nullptr && value->is_array()) {
    std::vector<std::string> all;
    for (const toml::node& element : *value->as_array()) {
      if (!element.is_string())
        return fail(Errc::kInvalidInput,
                    fmt::format("{}: an element of '{}' is {}", position(node_->path, element.source()), key,
                                type_name(element)),
                    "write texts in quotes");
      all.push_back(element.as_string()->get());
    }
    return all;
  }
  HR_TRY(std::string one, text(key));
  return std::vector{std::move(one)};
}

Result<std::vector<TomlTable>> TomlTable::tables(std::string_view key) const {
  std::vector<TomlTable> all;
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return all;
  const toml::array* array = value->as_array();
  if (array == nullptr || !array->is_array_of_tables())
    return tl::unexpected(
        wrong(key, fmt::format("is {}", type_name(*value)), fmt::format("write [[{}]] on a line of its own", key)));
  for (const toml::node& element : *array) {
    TomlTable table;
    table.node_ = std::make_shared<Node>(Node{node_->document, element.as_table(), node_->path});
    all.push_back(std::move(table));
  }
  return all;
}

Result<TomlFile> TomlFile::parse(std::string_view text, const std::string& path) {
  TomlFile file;
  try {
    auto document = std::make_shared<const toml::table>(toml::parse(text, path));
    file.root_.node_ = std::make_shared<TomlTable::Node>(TomlTable::Node{document, document.get(), path});
  } catch (const toml::parse_error& error) {
    return fail(Errc::kInvalidInput, fmt::format("{}: {}", position(path, error.source()), error.description()),
                "this is not valid TOML; see https://toml.io");
  }
  return file;
}

}  // namespace headroom::sim
