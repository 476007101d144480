// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/strings.h"
#include "tasks/template_task.h"

namespace headroom::tasks {

namespace {

bool is_variable_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), good);
}

class EnvironmentParser {
 public:
  EnvironmentParser(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  Result<Environment> run() {
    while (at_ < text_.size()) {
      ++line_;
      HR_TRYV(entry());
    }
    return std::move(variables_);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view what, std::string_view hint) const {
    return fail(Errc::kInvalidInput, fmt::format("{}:{}: {}", file_, line_, what), std::string(hint));
  }

  Result<void> entry() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    const std::string_view content = trim(line);
    if (content.empty() || content[0] == '#') return at_ = end + 1, Result<void>{};
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) return wrong("no '='", "write NAME=value");
    std::string_view name = trim(line.substr(0, equals));
    if (name.starts_with("export ") || name.starts_with("export\t")) name = trim(name.substr(7));
    if (!is_variable_name(name))
      return wrong(fmt::format("'{}' is no name of a variable", name), "letters, digits and '_', no digit in front");
    at_ += equals + 1;
    while (at_ < end && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    std::string value;
    if (at_ < end && (text_[at_] == '"' || text_[at_] == '\'')) {
      HR_TRY(value, quoted_value());
    } else {
      value = plain_value(text_.substr(at_, end - at_));
      at_ = end + 1;
    }
    if (value.find('\0') != std::string::npos) return wrong("a zero byte in the value", "remove it");
    variables_.emplace_back(name, std::move(value));
    return {};
  }

  // Up to " #", without blanks at the end.
  static std::string plain_value(std::string_view rest) {
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (rest[i] == '#' && (i == 0 || rest[i - 1] == ' ' || rest[i - 1] == '\t')) rest = rest.substr(0, i);
    return std::string(trim(rest));
  }

  Result<std::string> quoted_value() {
    const char quote = text_[at_++];
    const int opened = line_;
    std::string value;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        const char next = text_[++at_];
        if (next == '\n') ++line_;
        value += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
      } else {
        value += text_[at_];
      }
    }
    if (at_ >= text_.size()) {
      line_ = opened;
      return wrong(fmt::format("the quote {} is not closed", quote), "close it");
    }
    const std::size_t end = std::min(text_.find('\n', ++at_), text_.size());
    const std::string_view rest = trim(text_.substr(at_, end - at_));
    if (!rest.empty() && rest[0] != '#')
      return wrong(fmt::format("'{}' after the closing quote", rest), "quote the whole value");
    at_ = end + 1;
    return value;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 0;
  Environment variables_;
};

}  // namespace

Result<Environment> parse_environment(std::string_view text, const std::string& file) {
  return EnvironmentParser(text, file).run();
}

}  // namespace headroom::tasks
