// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "tasks/task_list_make.h"

namespace headroom::tasks {

namespace {

// Records of RFC 4180, one after the other; also with line ends of any kind.
class CsvReader {
 public:
  CsvReader(std::string_view text, char separator) : text_(text), separator_(separator) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] std::size_t line() const { return first_line_; }  // where the last record began

  Result<std::vector<std::string>> record() {
    std::vector<std::string> fields(1);
    first_line_ = ++line_;
    for (;; ++at_) {
      if (at_ >= text_.size()) return fields;
      const char c = text_[at_];
      if (c == '"' && fields.back().empty()) {
        HR_TRYV(quoted(fields.back()));
      } else if (c == separator_) {
        fields.emplace_back();
      } else if (c == '\n' || c == '\r') {
        at_ += text_.substr(at_, 2) == "\r\n" ? 2U : 1U;
        return fields;
      } else {
        fields.back() += c;
      }
    }
  }

 private:
  // Leaves at_ on the closing quote.
  Result<void> quoted(std::string& field) {
    const std::size_t opened = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (text_.substr(at_, 2) != "\"\"") return after_quote();
        ++at_;
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    first_line_ = opened;
    return fail(Errc::kInvalidInput, "a quote that is not closed", "close it, or double the quotes inside a field");
  }
  Result<void> after_quote() const {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\n';
    if (next == separator_ || next == '\n' || next == '\r') return {};
    return fail(Errc::kInvalidInput, fmt::format("'{}' after a closing quote", next),
                "quotes inside a field are doubled");
  }

  std::string_view text_;
  char separator_;
  std::size_t at_ = 0, line_ = 0, first_line_ = 0;
};

Result<std::vector<std::string>> header_of(CsvReader& reader) {
  HR_TRY(const std::vector<std::string> fields, reader.record());
  if (fields.size() > kMostParameters) return too_many_parameters();
  std::vector<std::string> names;
  for (const std::string& field : fields) {
    const std::string name(trim(field));
    HR_TRYV(check_parameter_name(name));
    if (std::find(names.begin(), names.end(), name) != names.end())
      return fail(Errc::kInvalidInput, fmt::format("two columns are named '{}'", name), "rename one");
    names.push_back(name);
  }
  return names;
}

}  // namespace

Result<TaskSet> tasks_from_csv(std::string_view text, const ListOptions& options) {
  HR_TRY(TaskTemplate task, template_with_command(options));
  CsvReader reader(text, options.separator);
  const auto here = [&](Error error) {
    return tl::unexpected(within(line_of(options, reader.line()), std::move(error)));
  };
  auto names = header_of(reader);
  if (!names) return here(names.error());
  TaskCollector collector;
  while (!reader.at_end()) {
    auto fields = reader.record();
    if (!fields) return here(fields.error());
    if (fields->size() == 1 && trim((*fields)[0]).empty() && (names->size() > 1 || (*fields)[0].empty())) continue;
    if (fields->size() != names->size())
      return here({Errc::kInvalidInput,
                   fmt::format("{}, but {}", count_of(fields->size(), "field"), count_of(names->size(), "column")),
                   fmt::format("fields are separated by '{}'",
                               options.separator == '\t' ? "\\t" : std::string(1, options.separator))});
    Parameters parameters;
    for (std::size_t i = 0; i < names->size(); ++i) parameters.emplace_back((*names)[i], std::move((*fields)[i]));
    task.rest.line = static_cast<int>(reader.line());
    HR_TRYV(collector.add(task, {std::move(parameters), line_of(options, reader.line()), {}}));
  }
  return set_of(collector, options);
}

}  // namespace headroom::tasks
