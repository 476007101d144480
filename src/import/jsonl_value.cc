// SPDX-License-Identifier: Apache-2.0
#include "import/jsonl_value.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace headroom {

namespace {

constexpr std::size_t kDeepest = 16;  // ours are three deep

class Builder final : public nlohmann::json::json_sax_t {
 public:
  JsonValue root;
  std::string problem;
  std::size_t position = 0;

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put({JsonValue::Kind::kBool, value ? "true" : "false", {}, {}}); }
  bool number_integer(number_integer_t value) override { return put_number(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override { return put_number(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { return put_number(text); }
  bool string(string_t& text) override { return put({JsonValue::Kind::kString, std::move(text), {}, {}}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonValue::Kind::kObject); }
  bool start_array(std::size_t) override { return open(JsonValue::Kind::kList); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    position = at;
    const std::string_view words = error.what();  // "[json.exception.parse_error.101] parse error at …: what"
    const auto colon = words.find(": ");
    problem = colon == std::string_view::npos ? words : words.substr(colon + 2);
    return false;
  }

 private:
  bool put_number(std::string text) { return put({JsonValue::Kind::kNumber, std::move(text), {}, {}}); }
  bool put(JsonValue value) {
    place(std::move(value));
    return true;
  }
  // Pointers to open containers stay valid: only the innermost one grows.
  JsonValue* place(JsonValue value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    JsonValue& parent = *open_.back();
    if (parent.kind == JsonValue::Kind::kObject) {
      parent.members.emplace_back(std::move(key_), std::move(value));
      return &parent.members.back().second;
    }
    parent.items.push_back(std::move(value));
    return &parent.items.back();
  }
  bool open(JsonValue::Kind kind) {
    if (open_.size() == kDeepest) {
      problem = "nested too deep";
      return false;
    }
    open_.push_back(place({kind, {}, {}, {}}));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<JsonValue*> open_;
  std::string key_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> JsonValue::integer() const {
  return kind == Kind::kNumber ? parse_number<std::int64_t>(text) : std::nullopt;
}

std::optional<std::string> JsonValue::plain() const {
  if (kind == Kind::kString || kind == Kind::kNumber || kind == Kind::kBool) return text;
  return std::nullopt;
}

Result<JsonValue> parse_json_line(std::string_view line) {
  Builder builder;
  if (nlohmann::json::sax_parse(line.begin(), line.end(), &builder)) return std::move(builder.root);
  return fail(Errc::kInvalidInput, fmt::format("column {}: {}", std::max<std::size_t>(builder.position, 1),
                                               builder.problem.empty() ? "no JSON" : builder.problem));
}

std::optional<std::int64_t> parse_decimal(std::string_view text, int exp10) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto e = text.find_first_of("eE");
  std::int64_t shift = exp10;
  if (e != std::string_view::npos) {
    auto exponent = text.substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    const auto power = parse_number<int>(exponent);
    if (!power || *power > 1000 || *power < -1000) return std::nullopt;
    shift += *power;
    text = text.substr(0, e);
  }
  std::string digits(text);
  if (const auto point = digits.find('.'); point != std::string::npos) {
    shift -= static_cast<std::int64_t>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  for (; shift < 0 && digits.size() > 1 && digits.back() == '0'; ++shift) digits.pop_back();
  const bool zero = digits.find_first_not_of('0') == std::string::npos;
  if (shift < 0 && !zero) return std::nullopt;
  if (shift > 0 && !zero) {
    if (shift > 40) return std::nullopt;
    digits.append(static_cast<std::size_t>(shift), '0');
  }
  const auto magnitude = parse_number<std::uint64_t>(digits);
  constexpr auto kTop = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!magnitude || *magnitude > kTop + (negative ? 1 : 0)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? ~*magnitude + 1 : *magnitude);
}

}  // namespace headroom
