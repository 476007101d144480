// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/strings.h"
#include "tasks/task_list.h"

namespace headroom::tasks {

namespace {

constexpr std::array<std::string_view, 4> kMarks{":::", ":::+", "::::", "::::+"};
bool is_mark(const std::string& word) { return std::find(kMarks.begin(), kMarks.end(), word) != kMarks.end(); }

struct Source {
  std::vector<std::string> values;
  bool linked = false;  // goes along with the one before
};

Error no_values(const std::string& mark) {
  return {Errc::kInvalidInput, fmt::format("nothing after {}", mark), "write the values after it"};
}

Result<std::vector<Source>> read_sources(const std::vector<std::string>& words, std::size_t at,
                                         const FileReader& read) {
  std::vector<Source> sources;
  while (at < words.size()) {
    const std::string& mark = words[at++];
    const std::size_t end = static_cast<std::size_t>(
        std::find_if(words.begin() + static_cast<std::ptrdiff_t>(at), words.end(), is_mark) - words.begin());
    if (end == at) return tl::unexpected(no_values(mark));
    const bool linked = mark.ends_with('+');
    if (linked && sources.empty())
      return fail(Errc::kInvalidInput, fmt::format("{} without a source before it", mark), "start with :::");
    if (mark.starts_with("::::")) {
      for (; at < end; ++at) {
        HR_TRY(const std::string text, read(words[at]));
        Source source{{}, linked};
        for (const auto line : split(text, '\n'))
          if (!trim(line).empty()) source.values.emplace_back(trim(line));
        if (source.values.empty())
          return fail(Errc::kInvalidInput, fmt::format("{}: no values", words[at]), "a line is a value");
        sources.push_back(std::move(source));
      }
    } else {
      sources.push_back(
          {{words.begin() + static_cast<std::ptrdiff_t>(at), words.begin() + static_cast<std::ptrdiff_t>(end)},
           linked});
    }
    at = end;
  }
  return sources;
}

// Linked sources as rows that go together.
struct Axis {
  std::vector<const Source*> sources;
  std::size_t size = 0;
};

std::vector<Axis> axes_of(const std::vector<Source>& sources) {
  std::vector<Axis> axes;
  for (const Source& source : sources) {
    if (!source.linked) axes.push_back({{}, source.values.size()});
    axes.back().sources.push_back(&source);
    axes.back().size = std::min(axes.back().size, source.values.size());
  }
  return axes;
}

// {/} {.} {//} {/.}: parts of a path.
std::string part_of(const std::string& value, std::string_view part) {
  const auto slash = value.find_last_of('/');
  const auto without_extension = [](const std::string& text) {
    const auto dot = text.find_last_of('.');
    const auto last = text.find_last_of('/');
    const bool hidden = dot == std::string::npos || dot == 0 || (last != std::string::npos && dot <= last + 1);
    return hidden ? text : text.substr(0, dot);
  };
  const std::string base = slash == std::string::npos ? value : value.substr(slash + 1);
  if (part == "/") return base;
  if (part == "//") return slash == std::string::npos ? "." : slash == 0 ? "/" : value.substr(0, slash);
  if (part == "/.") return without_extension(base);
  if (part == ".") return without_extension(value);
  return value;
}

// A placeholder of GNU parallel, for the values of one job.
std::optional<std::string> computed(std::string_view name, const Parameters& values, std::size_t job) {
  if (name == "#") return std::to_string(job);
  std::size_t digits = 0;
  while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9') ++digits;
  const auto which = parse_number<std::size_t>(name.substr(0, digits));
  const std::string_view part = name.substr(digits);
  if (!part.empty() && part[0] != '.' && part[0] != '/') return std::nullopt;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!which || *which == i + 1) parts.push_back(part_of(values[i].second, part));
  if (parts.empty()) return std::nullopt;
  return join(parts, " ");
}

// {%} is parallel's word for {slot}. A command that names no value gets all of them at its end; a word {} of several
// sources becomes several words.
void complete(TaskTemplate& task, std::size_t sources) {
  bool named = false;
  for (Field& field : task.argv) {
    for (Piece& piece : field.pieces) {
      if (!piece.placeholder) continue;
      if (piece.text == "%") piece.text = "slot";
      named = named || (!is_place_name(piece.text) && piece.text != "#" && piece.text != "task");
    }
  }
  const Pieces everything{{"", true}};
  if (task.shell) {
    if (!named) task.argv.back().pieces.push_back({" ", false});
    if (!named) task.argv.back().pieces.push_back({sources == 1 ? "" : "1", true});
    for (std::size_t i = 2; !named && i <= sources; ++i) {
      task.argv.back().pieces.push_back({" ", false});
      task.argv.back().pieces.push_back({std::to_string(i), true});
    }
    return;
  }
  if (!named) task.argv.push_back({"command", "", everything});
  std::vector<Field> words;
  for (Field& field : task.argv) {
    if (field.pieces != everything || sources == 1) {
      words.push_back(std::move(field));
      continue;
    }
    for (std::size_t i = 1; i <= sources; ++i) words.push_back({field.key, "", {{std::to_string(i), true}}});
  }
  task.argv = std::move(words);
}

Result<TaskTemplate> template_of_words(const std::vector<std::string>& command, const ListOptions& options,
                                       std::size_t sources) {
  if (command.empty())
    return fail(Errc::kInvalidInput, "nothing to run before :::", "headroom batch -- COMMAND {} ::: VALUES");
  HR_TRY(TaskTemplate task, template_of(options));
  const bool line = options.shell || (command.size() == 1 && command[0].find(' ') != std::string::npos);
  const Field like{"command", "", {}};
  if (line) {
    HR_TRYV(set_command(task, {"/bin/sh", "-c", join(command, " ")}, like, Braces::kParallel));
    task.shell = true;
    task.rest.command_template = join(command, " ");
  } else {
    HR_TRYV(set_command(task, command, like, Braces::kParallel));
  }
  complete(task, sources);
  return task;
}

Result<std::size_t> product_of(const std::vector<Axis>& axes) {
  std::size_t product = 1;
  for (const Axis& axis : axes) {
    product *= axis.size;
    if (product > kMostTasks)
      return fail(Errc::kInvalidInput,
                  fmt::format("more than {} combinations", human_count(static_cast<std::int64_t>(kMostTasks))),
                  "link sources with :::+, or split the batch");
  }
  return product;
}

Result<TaskSet> tasks_from_sources(const std::vector<std::string>& command, const std::vector<Source>& sources,
                                   const ListOptions& options) {
  HR_TRY(const TaskTemplate task, template_of_words(command, options, sources.size()));
  const std::vector<Axis> axes = axes_of(sources);
  HR_TRY(const std::size_t product, product_of(axes));
  TaskCollector collector;
  for (std::size_t number = 0; number < product; ++number) {
    std::vector<std::size_t> at(axes.size());
    std::size_t rest = number;
    for (std::size_t i = axes.size(); i-- > 0; rest /= axes[i].size) at[i] = rest % axes[i].size;
    Row row{{}, options.file, {}};
    for (std::size_t i = 0; i < axes.size(); ++i)
      for (const Source* source : axes[i].sources)
        row.parameters.emplace_back(std::to_string(row.parameters.size() + 1), source->values[at[i]]);
    row.computed = [&row, number](std::string_view name) { return computed(name, row.parameters, number + 1); };
    HR_TRYV(collector.add(task, row));
  }
  return set_of(collector, options);
}

}  // namespace

bool is_argument_list(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), is_mark);
}

Result<TaskSet> tasks_from_arguments(const std::vector<std::string>& words, const ListOptions& options) {
  const auto first = std::find_if(words.begin(), words.end(), is_mark);
  HR_TRY(const std::vector<Source> sources,
         read_sources(words, static_cast<std::size_t>(first - words.begin()), options.read));
  return tasks_from_sources({words.begin(), first}, sources, options);
}

Result<TaskSet> tasks_from_values(const std::vector<std::string>& command, std::vector<std::string> values,
                                  const ListOptions& options) {
  return tasks_from_sources(command, {{std::move(values), false}}, options);
}

}  // namespace headroom::tasks
