// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "cli/command_text.h"
#include "report/layout.h"
#include "report/palette.h"

namespace headroom::cli {

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
