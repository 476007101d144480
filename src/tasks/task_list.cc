// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>

#include "base/json.h"
#include "base/strings.h"
#include "tasks/task_list_make.h"
#include "tasks/template_words.h"

namespace headroom::tasks {

namespace {

// The names of the outermost object: of two values under one name the library would keep one, and say nothing.
class OuterNames final : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  std::string twice;  // "": none
  [[nodiscard]] std::size_t count() const { return seen_.size(); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ == 1 && !seen_.insert(name).second) twice = name;
    return twice.empty() && seen_.size() <= kMostParameters;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  int depth_ = 0;
  std::unordered_set<std::string> seen_;
};

Result<void> check_names(std::string_view line) {
  OuterNames names;
  (void)nlohmann::ordered_json::sax_parse(line, &names);
  if (names.count() > kMostParameters) return too_many_parameters();
  if (names.twice.empty()) return {};
  return fail(Errc::kInvalidInput, fmt::format("'{}' is there twice", names.twice), "a name has one value");
}

Result<Parameters> parameters_of_object(std::string_view line) {
  using Json = nlohmann::ordered_json;
  HR_TRYV(check_names(line));
  const Json row = parse_json<Json>(line);
  if (row.is_discarded()) return fail(Errc::kInvalidInput, "not valid JSON", "a line is one object: {\"lr\": 0.1}");
  if (!row.is_object()) return fail(Errc::kInvalidInput, "not an object", "a line is one object: {\"lr\": 0.1}");
  Parameters parameters;
  for (const auto& [key, value] : row.items()) {
    HR_TRYV(check_parameter_name(key));
    // A text stands for itself; everything else as JSON writes it.
    parameters.emplace_back(
        key, value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return parameters;
}

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace

Result<TaskSet> tasks_from_jsonl(std::string_view text, const ListOptions& options) {
  HR_TRY(TaskTemplate task, template_with_command(options));
  TaskCollector collector;
  std::size_t number = 0;
  for (const std::string_view line : split(without_bom(text), '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    auto parameters = parameters_of_object(line);
    if (!parameters) return tl::unexpected(within(line_of(options, number), parameters.error()));
    task.rest.line = static_cast<int>(number);
    HR_TRYV(collector.add(task, {std::move(*parameters), line_of(options, number), {}}));
  }
  return set_of(collector, options);
}

namespace {

// The line itself is the command, as `sh -c` would run it. Its parameters are not known, so durations are learned for
// the program.
Result<void> set_line_command(TaskTemplate& task, std::string_view line, const std::string& place) {
  const Field like{"command", place, {}};
  const auto words = words_without_shell(line);
  if (words) {
    HR_TRYV(set_command(task, *words, like, Braces::kVerbatim));
  } else {
    HR_TRYV(set_command(task, {"/bin/sh", "-c", std::string(line)}, like, Braces::kVerbatim));
    task.shell = true;
  }
  task.rest.command_template = program_of(words ? *words : split_words(line).value_or(std::vector{std::string(line)}));
  return {};
}

}  // namespace

Result<TaskSet> tasks_from_lines(std::string_view text, const ListOptions& options) {
  std::vector<std::string> values;
  HR_TRY(TaskTemplate task, template_of(options));
  TaskCollector collector;
  std::size_t number = 0;
  for (const std::string_view line : split(without_bom(text), '\n')) {
    ++number;
    const std::string_view content = trim(line);
    if (content.empty() || content[0] == '#') continue;
    if (!options.command.empty()) {
      values.emplace_back(content);
      continue;
    }
    const std::string place = line_of(options, number);
    task.rest.line = static_cast<int>(number);
    HR_TRYV(set_line_command(task, content, place));
    HR_TRYV(collector.add(task, {{}, place, {}}));
  }
  if (values.empty()) return set_of(collector, options);
  std::vector<std::string> command{options.command};
  if (!options.shell) {
    auto words = split_words(options.command);
    if (!words) return tl::unexpected(within("--command", words.error()));
    command = std::move(*words);
  }
  return tasks_from_values(command, std::move(values), options);
}

}  // namespace headroom::tasks
