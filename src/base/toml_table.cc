// SPDX-License-Identifier: Apache-2.0
#include "base/toml_table.h"

#include <algorithm>
#include <sstream>

#include "base/human.h"
#include "base/strings.h"
#include "base/toml.h"

namespace headroom {

// A table and the document it lives in.
struct TomlTable::Node {
  std::shared_ptr<const toml::table> document;
  const toml::table* table;
  std::string path;
};

namespace {

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

std::string place_of(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}:{}", path, source.begin.line, source.begin.column);
}

// The keys as they stand in the file.
std::vector<const toml::key*> in_order(const toml::table& table) {
  std::vector<const toml::key*> keys;
  for (const auto& [key, value] : table) keys.push_back(&key);
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto* a, const auto* b) { return a->source().begin < b->source().begin; });
  return keys;
}

Error wrong_at(std::string_view place, std::string_view key, std::string_view label, std::string_view what,
               std::string hint) {
  const std::string_view in = label.empty() ? "" : " in ";
  return {Errc::kInvalidInput, fmt::format("{}: '{}'{}{} {}", place, key, in, label, what), std::move(hint)};
}

// As a person would write it on a command line.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* fraction = node.as_floating_point()) {
    const std::string text = fmt::format("{}", fraction->get());
    return text.find_first_of(".enai") == std::string::npos ? text + ".0" : text;
  }
  std::ostringstream stream;
  if (const auto* date = node.as_date()) stream << date->get();
  if (const auto* time = node.as_time()) stream << time->get();
  if (const auto* moment = node.as_date_time()) stream << moment->get();
  if (stream.str().empty()) return std::nullopt;
  return stream.str();
}

}  // namespace

Result<TomlTable> TomlTable::parse(std::string_view text, const std::string& path) {
  TomlTable root;
  try {
    auto document = std::make_shared<const toml::table>(toml::parse(text, path));
    root.node_ = std::make_shared<Node>(Node{document, document.get(), path});
  } catch (const toml::parse_error& error) {
    return fail(Errc::kInvalidInput, fmt::format("{}: {}", place_of(path, error.source()), error.description()),
                "this is not valid TOML; see https://toml.io");
  }
  return root;
}

bool TomlTable::has(std::string_view key) const { return node_->table->contains(key); }
bool TomlTable::is_text(std::string_view key) const { return has(key) && node_->table->get(key)->is_string(); }
bool TomlTable::is_table(std::string_view key) const { return has(key) && node_->table->get(key)->is_table(); }
int TomlTable::line() const { return static_cast<int>(node_->table->source().begin.line); }

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> names;
  for (const toml::key* key : in_order(*node_->table)) names.emplace_back(key->str());
  return names;
}

std::string TomlTable::place(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  return value != nullptr ? place_of(node_->path, value->source()) : fmt::format("{}:{}", node_->path, line());
}

Error TomlTable::wrong(std::string_view key, std::string_view what, std::string hint) const {
  return wrong_at(place(key), key, label_, what, std::move(hint));
}

Error TomlTable::of_type(std::string_view key, std::string_view wanted, std::string hint) const {
  return wrong(key, fmt::format("is {}, not {}", type_name(*node_->table->get(key)), wanted), std::move(hint));
}

Error TomlTable::missing(std::string_view key, std::string_view example) const {
  return wrong(key, "is missing", fmt::format("add {} = {}", key, example));
}

Result<void> TomlTable::only(const std::vector<std::string_view>& known) const {
  for (const toml::key* unknown : in_order(*node_->table)) {
    const std::string_view key = unknown->str();
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto guess = closest(key, known);
    std::string list;
    for (const auto name : known) list += (list.empty() ? "" : ", ") + std::string(name);
    const std::string in = label_.empty() ? "" : " in " + label_;
    return fail(Errc::kInvalidInput,
                fmt::format("{}: unknown key '{}'{}", place_of(node_->path, unknown->source()), key, in),
                guess.empty() ? "known keys: " + list : fmt::format("did you mean '{}'?", guess));
  }
  return {};
}

Result<std::optional<std::string>> TomlTable::text(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return tl::unexpected(of_type(key, "a text", "write it in quotes"));
  return value->as_string()->get();
}

Result<std::optional<std::int64_t>> TomlTable::integer(std::string_view key, std::int64_t low,
                                                       std::int64_t high) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return std::nullopt;
  const auto* whole = value->as_integer();
  const std::string range = fmt::format("a whole number from {} to {}", human_count(low), human_count(high));
  if (whole == nullptr) return tl::unexpected(of_type(key, "a whole number", range));
  if (whole->get() < low || whole->get() > high)
    return tl::unexpected(wrong(key, fmt::format("is {}", whole->get()), range));
  return whole->get();
}

Result<std::optional<double>> TomlTable::number(std::string_view key, double low, double high) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return std::nullopt;
  const std::string range = fmt::format("a number from {} to {}", low, high);
  const auto found = value->is_number() ? value->value<double>() : std::nullopt;
  if (!found) return tl::unexpected(of_type(key, "a number", range));
  if (!(*found >= low && *found <= high)) return tl::unexpected(wrong(key, fmt::format("is {}", *found), range));
  return *found;
}

Result<std::optional<bool>> TomlTable::boolean(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return tl::unexpected(of_type(key, "true or false", "without quotes"));
  return value->as_boolean()->get();
}

Result<std::string> TomlTable::need_text(std::string_view key) const {
  HR_TRY(auto value, text(key));
  if (!value) return tl::unexpected(missing(key, "\"…\""));
  return std::move(*value);
}

Result<std::int64_t> TomlTable::need_integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  HR_TRY(const auto value, integer(key, low, high));
  if (!value) return tl::unexpected(missing(key, "a whole number"));
  return *value;
}

Result<double> TomlTable::need_number(std::string_view key, double low, double high) const {
  HR_TRY(const auto value, number(key, low, high));
  if (!value) return tl::unexpected(missing(key, "a number"));
  return *value;
}

Result<std::vector<std::string>> TomlTable::texts(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return std::vector<std::string>{};
  if (value->is_string()) return std::vector{value->as_string()->get()};
  if (!value->is_array()) return tl::unexpected(of_type(key, "a list of texts", "for example [\"a\", \"b\"]"));
  std::vector<std::string> all;
  for (const toml::node& element : *value->as_array()) {
    if (!element.is_string())
      return tl::unexpected(wrong_at(place_of(node_->path, element.source()), key, label_,
                                     fmt::format("has an element that is {}", type_name(element)),
                                     "write texts in quotes"));
    all.push_back(element.as_string()->get());
  }
  return all;
}

Result<std::string> TomlTable::scalar(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  HR_CHECK(value != nullptr, "only keys that are there");
  if (auto text = scalar_text(*value)) return std::move(*text);
  return tl::unexpected(of_type(key, "a text or a number", "one value"));
}

Result<std::vector<std::string>> TomlTable::scalars(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  HR_CHECK(value != nullptr, "only keys that are there");
  if (!value->is_array()) return tl::unexpected(of_type(key, "a list", fmt::format("{} = [ … ]", key)));
  std::vector<std::string> all;
  for (const toml::node& element : *value->as_array()) {
    auto text = scalar_text(element);
    if (!text)
      return tl::unexpected(wrong_at(place_of(node_->path, element.source()), key, label_,
                                     fmt::format("has a value that is {}", type_name(element)),
                                     "values are texts, numbers, true, false and dates"));
    all.push_back(std::move(*text));
  }
  return all;
}

TomlTable TomlTable::inside(std::string_view key, const void* table, bool listed) const {
  TomlTable found;
  found.node_ = std::make_shared<Node>(Node{node_->document, static_cast<const toml::table*>(table), node_->path});
  // "[task]" and "grid" are "[task.grid]"
  const std::size_t begin = label_.find_first_not_of('['), end = label_.find_last_not_of(']');
  const std::string outer = label_.empty() ? "" : label_.substr(begin, end - begin + 1) + ".";
  found.label_ = fmt::format("{}{}{}{}", listed ? "[[" : "[", outer, key, listed ? "]]" : "]");
  return found;
}

Result<std::optional<TomlTable>> TomlTable::table(std::string_view key) const {
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_table()) return tl::unexpected(of_type(key, "a table", fmt::format("{} = {{ … }}", key)));
  return inside(key, value->as_table(), false);
}

Result<std::vector<TomlTable>> TomlTable::tables(std::string_view key) const {
  std::vector<TomlTable> all;
  const toml::node* value = node_->table->get(key);
  if (value == nullptr) return all;
  if (value->is_table()) {
    all.push_back(inside(key, value->as_table(), false));
    return all;
  }
  const toml::array* array = value->as_array();
  if (array == nullptr)
    return tl::unexpected(of_type(key, "a table", fmt::format("write [[{}]] on a line of its own", key)));
  for (const toml::node& element : *array) {
    if (!element.is_table())
      return tl::unexpected(wrong_at(place_of(node_->path, element.source()), key, label_,
                                     fmt::format("has an element that is {}", type_name(element)),
                                     "elements are tables"));
    all.push_back(inside(key, element.as_table(), true));
  }
  return all;
}

}  // namespace headroom
