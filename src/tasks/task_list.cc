// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_list.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>

#include "base/human.h"
#include "base/json.h"
#include "base/strings.h"
#include "tasks/template.h"

namespace headroom::tasks {

namespace {

Result<std::vector<Field>> fields_of(const std::vector<std::string>& texts, std::string_view option) {
  std::vector<Field> fields;
  for (const std::string& text : texts) {
    HR_TRY(Field field, make_field(std::string(option), "", text));
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace

tl::unexpected<Error> too_many_parameters() {
  return fail(Errc::kInvalidInput, fmt::format("more than {} parameters", kMostParameters),
              "a task of so many is data: name a file instead");
}

EnvironmentReader cached_environments(FileReader read) {
  return [read = std::move(read), known = std::make_shared<std::map<std::string, Environment>>()](
             const std::string& path) -> Result<Environment> {
    if (const auto found = known->find(path); found != known->end()) return found->second;
    HR_TRY(const std::string text, read(path));
    HR_TRY(Environment variables, parse_environment(text, path));
    return known->emplace(path, std::move(variables)).first->second;
  };
}

Result<TaskTemplate> template_of(const ListOptions& options) {
  TaskTemplate task;
  const TaskSpec& defaults = options.defaults;
  HR_TRY(task.name, make_field("--name", "", defaults.name));
  HR_TRY(task.group, make_field("--group", "", defaults.group));
  HR_TRY(task.working_directory, make_field("--cwd", "", defaults.working_directory));
  HR_TRY(task.inputs, fields_of(defaults.inputs, "--inputs"));
  HR_TRY(task.outputs, fields_of(defaults.outputs, "--outputs"));
  HR_TRY(task.after, fields_of(defaults.after, "--after"));
  HR_TRY(task.env_files, fields_of(options.env_files, "--env-file"));
  for (const auto& [name, value] : defaults.environment) {
    HR_TRY(Field field, make_field("--env " + name, "", value));
    task.environment.emplace_back(name, std::move(field));
  }
  task.read_environment = cached_environments(options.read);
  task.rest.resources = defaults.resources;
  task.rest.retry = defaults.retry;
  task.rest.timeout = defaults.timeout;
  task.rest.hang_timeout = defaults.hang_timeout;
  task.rest.priority = defaults.priority;
  task.rest.file = options.file;
  return task;
}

Result<TaskTemplate> template_with_command(const ListOptions& options) {
  if (options.command.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: parameters without a command", options.file),
                "add --command 'python3 train.py --lr {lr}', with the names of the parameters");
  HR_TRY(TaskTemplate task, template_of(options));
  HR_TRYV(set_command(task, options.command, options.shell, Field{"--command", "", {}}));
  return task;
}

std::string line_of(const ListOptions& options, std::size_t line) { return fmt::format("{}:{}", options.file, line); }

Result<TaskSet> set_of(TaskCollector& collector, const ListOptions& options) {
  if (collector.size() == 0)
    return fail(Errc::kInvalidInput, fmt::format("{}: no tasks", options.file), "a line is a task");
  TaskSet set;
  HR_TRY(set.tasks, collector.finish());
  return set;
}

Result<void> check_parameter_name(std::string_view name) {
  const auto pieces = parse_template("{" + std::string(name) + "}");
  const bool usable = pieces && pieces->size() == 1 && (*pieces)[0].placeholder && !name.empty() &&
                      (name[0] == '_' || name[0] < '0' || name[0] > '9') && name[0] != '.' && name[0] != '/' &&
                      name != "#" && name != "%";
  if (usable && !is_place_name(name) && name != "task") return {};
  return fail(Errc::kInvalidInput, fmt::format("'{}' is no name for a parameter", name),
              is_place_name(name) || name == "task" ? "this placeholder is Headroom's own; choose another name"
                                                    : "letters, digits, '_', '-' and '.', with a letter in front");
}

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
    parameters.emplace_back(key, value.is_string() ? value.get<std::string>() : json_text(value));
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
