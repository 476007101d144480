// SPDX-License-Identifier: Apache-2.0
#include "cli/command_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "cli/declared_verb.h"

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

}  // namespace headroom::cli
