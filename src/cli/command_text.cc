// SPDX-License-Identifier: Apache-2.0
#include "cli/command_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/declared_verb.h"
#include "report/layout.h"
#include "report/palette.h"

namespace headroom::cli {

namespace {

std::vector<std::string> lines_of(std::string_view text, std::string_view before) {
  std::vector<std::string> lines;
  if (text.empty()) return {std::string(trim(before))};
  for (const auto line : split(text, '\n')) lines.push_back(fmt::format("{}{}", before, line));
  return lines;
}

// CLI11 says "TEXT:{csv,jsonl}" and "INT:INT in [1 - 64]"; its names of types are a programmer's.
void put_values(const std::string& type, OptionText& option) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kWords{
      {{"INT", "COUNT"}, {"UINT", "COUNT"}, {"FLOAT", "NUMBER"}, {"BOOLEAN", ""}}};
  const auto colon = type.find(':');
  option.value = type.substr(0, colon);
  for (const auto& [theirs, ours] : kWords)
    if (option.value == theirs) option.value = ours;
  if (colon == std::string::npos) return;
  const std::string rest = type.substr(colon + 1);
  if (const auto open = rest.find('{'), close = rest.find('}');
      open != std::string::npos && close != std::string::npos) {
    for (const auto choice : split(std::string_view(rest).substr(open + 1, close - open - 1), ','))
      option.choices.emplace_back(choice);
    option.value = join(option.choices, "|");
  }
  if (const auto open = rest.find('['), close = rest.find(']');
      open != std::string::npos && close != std::string::npos) {
    std::string range = rest.substr(open + 1, close - open - 1);
    if (const auto dash = range.find(" - "); dash != std::string::npos) range.replace(dash, 3, " to ");
    option.what += fmt::format(" ({})", range);
  }
}

OptionText text_of(const CLI::Option& declared) {
  OptionText option{
      .names = {}, .value = {}, .choices = {}, .what = declared.get_description(), .group = declared.get_group()};
  for (const auto& name : declared.get_snames()) option.names.push_back("-" + name);
  for (const auto& name : declared.get_lnames()) option.names.push_back("--" + name);
  if (declared.get_items_expected_max() > 0) put_values(declared.get_type_name(), option);
  if (option.names.empty()) option.value = declared.get_name(true);
  return option;
}

void put_options(const CLI::App& app, CommandText& command) {
  for (const CLI::Option* declared : app.get_options()) {
    if (declared->get_group().empty()) continue;
    OptionText option = text_of(*declared);
    if (declared == app.get_help_ptr()) option.what = "show this help";
    (option.names.empty() ? command.positionals : command.options).push_back(std::move(option));
  }
  // Ours first, the usual one last.
  if (!command.options.empty())
    std::rotate(command.options.begin(), command.options.begin() + 1, command.options.end());
}

std::string usage_of(const CLI::App& app) {
  std::string usage = "[OPTIONS]";
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const std::string name = option->get_name(true) + (option->get_items_expected_max() > 1 ? "..." : "");
    usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  return usage;
}

CommandText text_of(const CLI::App& app, const std::string& name) {
  CommandText command{.name = name, .summary = app.get_description()};
  command.notes = trim(app.get_footer());
  put_options(app, command);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* s) { return !s->get_group().empty(); })) {
    CommandText part = text_of(*sub, fmt::format("{} {}", name, sub->get_name()));
    part.usage = lines_of(usage_of(*sub), part.name + " ");
    command.commands.push_back(std::move(part));
  }
  return command;
}

}  // namespace

CommandText text_of(const Verb& verb) {
  const auto declared = declare(verb);
  CommandText command = text_of(declared->app, fmt::format("headroom {}", verb.name));
  command.usage = lines_of(verb.usage, command.name + " ");
  command.examples = lines_of(verb.examples, "headroom ");
  command.takes_command = verb.takes_command;
  return command;
}

const CommandText& part_of(const CommandText& command, std::span<const std::string> words) {
  for (const CommandText& part : command.commands)
    if (!words.empty() && part.name == fmt::format("{} {}", command.name, words[0]))
      return part_of(part, words.subspan(1));
  return command;
}

std::string written(const OptionText& option) {
  std::string text = join(option.names, ", ");
  if (!option.value.empty()) text += (text.empty() || option.value.starts_with('=') ? "" : " ") + option.value;
  return text;
}

namespace {

constexpr std::size_t kWidest = 100, kNarrowest = 40, kNarrow = 60;

std::size_t width_of(const report::TextOptions& layout) { return std::clamp(layout.width, kNarrowest, kWidest); }

// "  --name VALUE   what it does", the words beside the names, or below them where there is no room.
std::string row(const std::string& name, const std::string& what, std::size_t column,
                const report::TextOptions& layout) {
  const std::size_t width = width_of(layout);
  const std::string shown = "  " + report::typed(name, layout);
  const std::string blanks(column, ' ');
  if (name.size() + 4 > column) return shown + "\n" + report::wrap(what, width, blanks, blanks);
  // Wrapped without the name, whose colours take no columns.
  const std::string words = report::wrap(what, width, blanks, blanks);
  return shown + std::string(column - name.size() - 2, ' ') + (words.empty() ? "\n" : words.substr(column));
}

std::size_t column_of(const report::TextOptions& layout) { return width_of(layout) < kNarrow ? 6 : 28; }

std::string rows(const std::vector<OptionText>& options, std::string_view group, const report::TextOptions& layout) {
  std::string text;
  for (const auto& option : options)
    if (option.group == group) text += row(written(option), option.what, column_of(layout), layout);
  return text;
}

std::string headed(std::string_view heading, const std::string& text, const report::TextOptions& layout) {
  return text.empty() ? "" : "\n" + report::bold(heading, layout) + "\n" + text;
}

// What stands behind the first word of a row "  WORD   what it is", and the row up to there.
std::size_t column_in(std::string_view line) {
  const auto word = line.find_first_not_of(' ');
  const auto gap = word == line.npos ? line.npos : line.find("  ", word);
  const auto column = gap == line.npos ? line.npos : line.find_first_not_of(' ', gap);
  return column == line.npos ? std::min(word, line.size()) : column;
}

// Paragraphs are wrapped; a line that begins with a blank is shown as it is where it fits, and else keeps its column.
std::string paragraphs(const std::string& notes, const report::TextOptions& layout) {
  std::string text, open;
  const auto close = [&] { text += report::wrap(std::exchange(open, ""), width_of(layout), "", ""); };
  for (const auto line : split(notes, '\n')) {
    if (line.empty() || line.front() == ' ') {
      close();
      const bool fits = report::display_width(line) <= width_of(layout);
      const std::size_t column = fits ? 0 : column_in(line);
      text += fits ? std::string(line) + "\n"
                   : report::wrap(std::string(line.substr(column)), width_of(layout), line.substr(0, column),
                                  std::string(column, ' '));
    } else {
      open += (open.empty() ? "" : " ") + std::string(line);
    }
  }
  close();
  return text;
}

}  // namespace

std::string help_text(const CommandText& command, const report::TextOptions& layout) {
  std::string text = report::wrap(fmt::format("{}: {}", command.name, command.summary), width_of(layout), "", "  ");
  text += "\n";
  for (std::size_t i = 0; i < command.usage.size(); ++i)
    text += (i == 0 ? report::bold("usage:", layout) + " " : std::string(7, ' ')) + command.usage[i] + "\n";
  std::string commands;
  for (const auto& part : command.commands)
    commands += row(part.name.substr(command.name.size() + 1), part.summary, column_of(layout), layout);
  text += headed("Commands", commands, layout);
  std::string arguments;
  for (const auto& option : command.positionals)
    arguments += row(written(option), option.what, column_of(layout), layout);
  text += headed("Arguments", arguments, layout);
  std::vector<std::string> groups;
  for (const auto& option : command.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  for (const auto& group : groups) text += headed(group, rows(command.options, group, layout), layout);
  if (!command.notes.empty()) text += "\n" + paragraphs(command.notes, layout);
  std::string examples;
  for (const auto& example : command.examples) examples += "  " + report::typed(example, layout) + "\n";
  return text + headed("Examples", examples, layout);
}

std::string overview(const report::TextOptions& layout) {
  std::string text = report::wrap(
      fmt::format("headroom {}: where every GPU-second of your training went, and what to change", HEADROOM_VERSION),
      width_of(layout), "", "  ");
  text += "\n" + report::bold("usage:", layout) + " headroom VERB [OPTIONS] ...\n\n";
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    text += row(std::string(verb.name), std::string(verb.summary), width_of(layout) < kNarrow ? 6 : 14, layout);
  }
  std::string examples;
  for (const char* example : {"headroom run python3 train.py", "headroom why --pid 4711", "headroom why gpu_stats.csv"})
    examples += "  " + report::typed(example, layout) + "\n";
  text += headed("Examples", examples, layout) + "\n";
  text +=
      report::wrap(fmt::format("headroom help VERB says more. Exit codes: {}.", kExitCodes), width_of(layout), "", "");
  return text;
}

}  // namespace headroom::cli
