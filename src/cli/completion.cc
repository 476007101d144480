// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "base/strings.h"
#include "cli/command_text.h"
#include "cli/verbs.h"

// Scripts that complete words, for three shells. All know verbs, commands below them, options, the values of options
// that have a list of them, names of recordings, and files for the rest.
namespace headroom::cli {

namespace {

constexpr std::string_view kNames = "headroom recordings names 2>/dev/null";

std::vector<CommandText> all_commands() {
  std::vector<CommandText> commands;
  for (const Verb& verb : verbs())
    if (!verb.hidden) commands.push_back(text_of(verb));
  return commands;
}

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

// "run", "batch show": the name without the program's.
std::string key_of(const CommandText& command) { return command.name.substr(command.name.find(' ') + 1); }

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) names.push_back(last_word(command.name));
  return names;
}

bool is_recording(const OptionText& option) { return option.value == "RECORDING"; }
bool is_folder(const OptionText& option) { return option.value == "DIR" || option.value == "FOLDER"; }
bool is_file(const OptionText& option) { return option.value == "FILE" || option.value == "LOG"; }

// ---- bash

std::string bash_values(const OptionText& option) {
  if (!option.choices.empty())
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", join(option.choices, " "));
  if (is_folder(option)) return "COMPREPLY=($(compgen -d -- \"$cur\"))";
  if (is_recording(option)) return "_headroom_recordings";
  return is_file(option) ? "COMPREPLY=($(compgen -f -- \"$cur\"))" : "COMPREPLY=()";
}

std::string bash_cases(const std::vector<CommandText>& commands) {
  std::string text;
  for (const auto& command : commands) {
    for (const auto& option : command.options) {
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const auto& name : option.names) patterns.push_back(fmt::format("'{} {}'", key_of(command), name));
      text += fmt::format("    {}) {}; return ;;\n", join(patterns, "|"), bash_values(option));
    }
    text += bash_cases(command.commands);
  }
  return text;
}

std::string bash_words(const std::vector<CommandText>& commands) {
  std::string text;
  for (const auto& command : commands) {
    text += fmt::format("    '{}') options='{}' parts='{}' ;;\n", key_of(command), join(option_names(command), " "),
                        join(names_of(command.commands), " "));
    text += bash_words(command.commands);
  }
  return text;
}

// For which commands `fits` holds, as a pattern of the shell's.
template <class Fits>
std::string keys_where(const std::vector<CommandText>& commands, std::string_view separator, Fits fits) {
  std::vector<std::string> keys;
  for (const auto& command : commands) {
    if (fits(command)) keys.push_back(fmt::format("'{}'", key_of(command)));
    for (const auto& part : command.commands)
      if (fits(part)) keys.push_back(fmt::format("'{}'", key_of(part)));
  }
  return join(keys, separator);
}

bool takes_recordings(const CommandText& command) {
  return std::any_of(command.positionals.begin(), command.positionals.end(), is_recording);
}

// ---- zsh

// Within '...[...]' of a specification of _arguments.
std::string zsh_quote(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      quoted += fmt::format("\\{}", c);
    else
      quoted += c;
  }
  return quoted;
}

std::string zsh_action(const OptionText& option) {
  if (!option.choices.empty()) return fmt::format("({})", join(option.choices, " "));
  if (is_folder(option)) return "_files -/";
  if (is_recording(option)) return "_headroom_recordings";
  return is_file(option) ? "_files" : " ";
}

std::string zsh_arguments(const CommandText& command) {
  std::string text = "_arguments -s";
  for (const auto& option : command.options) {
    const std::string value =
        option.value.empty() ? "" : fmt::format(":{}:{}", zsh_quote(option.value), zsh_quote(zsh_action(option)));
    for (const auto& name : option.names) {
      const bool with_equals = name.starts_with("--") && !value.empty();
      text += fmt::format(" \\\n        '*{}{}[{}]{}'", name, with_equals ? "=" : "", zsh_quote(option.what), value);
    }
  }
  if (command.takes_command)
    text += " \\\n        '*::command:_normal'";
  else
    text += fmt::format(" \\\n        '*:argument:{}'", takes_recordings(command) ? "_headroom_recordings" : "_files");
  return text;
}

std::string zsh_cases(const std::vector<CommandText>& commands) {
  std::string text;
  for (const auto& command : commands) {
    text += zsh_cases(command.commands);
    text += fmt::format("    '{}')\n      {} ;;\n", key_of(command), zsh_arguments(command));
  }
  return text;
}

std::string zsh_list(const std::vector<CommandText>& commands) {
  std::string text;
  for (const auto& command : commands)
    text += fmt::format(" \\\n    '{}:{}'", last_word(command.name), zsh_quote(command.summary));
  return text;
}

// ---- fish

std::string fish_quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
  return quoted + "'";
}

std::string fish_option(const OptionText& option, const std::string& condition) {
  std::string text = fmt::format("complete -c headroom -n {}", fish_quote(condition));
  for (const auto& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) {
    text += is_file(option) || is_folder(option) ? " -r" : " -x";
    if (!option.choices.empty()) text += fmt::format(" -a {}", fish_quote(join(option.choices, " ")));
    if (is_recording(option)) text += fmt::format(" -a {}", fish_quote(fmt::format("(echo last; {})", kNames)));
  }
  return text + fmt::format(" -d {}\n", fish_quote(option.what));
}

std::string fish_commands(const std::vector<CommandText>& commands) {
  std::string text;
  for (const auto& command : commands) {
    const std::string condition = fmt::format("__headroom_at {}", key_of(command));
    for (const auto& part : command.commands)
      text += fmt::format("complete -c headroom -n {} -a {} -d {}\n", fish_quote(condition), last_word(part.name),
                          fish_quote(part.summary));
    for (const auto& option : command.options) text += fish_option(option, condition);
    if (takes_recordings(command))
      text += fmt::format("complete -c headroom -n {} -a {}\n", fish_quote(condition),
                          fish_quote(fmt::format("(echo last; {})", kNames)));
    text += fish_commands(command.commands);
  }
  return text;
}

}  // namespace

std::string bash_completion() {
  const auto commands = all_commands();
  std::string text =
      "# bash completion for headroom; written by: headroom completion bash\n"
      "_headroom_recordings() {\n"
      "  COMPREPLY=($(compgen -W \"last $(" +
      std::string(kNames) +
      ")\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
      "}\n"
      "_headroom() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} key=${COMP_WORDS[1]} options='' "
      "parts=''\n"
      "  local word i\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '" +
      join(names_of(commands), " ") +
      " help --help --version' -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  if [[ $key == help ]]; then\n"
      "    ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W '" +
      join(names_of(commands), " ") +
      "' -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    word=\"${COMP_WORDS[1]} ${COMP_WORDS[i]}\"\n"
      "    case $word in\n"
      "    " +
      keys_where(commands, "|", [](const auto& c) { return std::count(c.name.begin(), c.name.end(), ' ') > 1; }) +
      ") key=$word; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$key $prev\" in\n" +
      bash_cases(commands) +
      "  esac\n"
      "  case $key in\n" +
      bash_words(commands) +
      "  esac\n"
      "  if [[ $cur == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case $key in\n"
      "    " +
      keys_where(commands, "|", takes_recordings) +
      ") _headroom_recordings ;;\n"
      "    " +
      keys_where(commands, "|", [](const auto& c) { return c.takes_command; }) +
      ") COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\")) ;;\n"
      "    'completion') COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")) ;;\n"
      "    *) COMPREPLY=($(compgen -W \"$parts\" -- \"$cur\") $(compgen -f -- \"$cur\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F _headroom headroom\n";
  return text;
}

std::string zsh_completion() {
  const auto commands = all_commands();
  std::string parts;
  for (const auto& command : commands)
    if (!command.commands.empty())
      parts += fmt::format("  {}) parts=({}) ;;\n", last_word(command.name), zsh_list(command.commands));
  return "#compdef headroom\n"
         "# zsh completion for headroom; written by: headroom completion zsh\n"
         "_headroom_recordings() {\n"
         "  local -a names\n"
         "  names=(last ${(f)\"$(" +
         std::string(kNames) +
         ")\"})\n"
         "  compadd -a names\n"
         "  _files\n"
         "}\n"
         "_headroom() {\n"
         "  local -a verbs parts\n"
         "  local key part\n"
         "  verbs=(" +
         zsh_list(commands) +
         ")\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe verb verbs\n"
         "    return\n"
         "  fi\n"
         "  if [[ $words[2] == help ]]; then\n"
         "    ((CURRENT == 3)) && _describe verb verbs\n"
         "    return\n"
         "  fi\n"
         "  if [[ $words[2] == completion ]]; then\n"
         "    compadd bash zsh fish\n"
         "    return\n"
         "  fi\n"
         "  key=$words[2]\n"
         "  case $key in\n" +
         parts +
         "  esac\n"
         "  if ((CURRENT == 3 && $#parts)); then _describe command parts; fi\n"
         "  for part in $parts; do\n"
         "    if ((CURRENT > 3)) && [[ $words[3] == ${part%%:*} ]]; then\n"
         "      key=\"$key $words[3]\"\n"
         "      words=($words[1] \"${(@)words[3,-1]}\")\n"
         "      ((CURRENT--))\n"
         "    fi\n"
         "  done\n"
         "  words=(\"${(@)words[2,-1]}\")\n"
         "  ((CURRENT--))\n"
         "  case $key in\n" +
         zsh_cases(commands) +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _headroom ]]; then _headroom \"$@\"; else compdef _headroom headroom; fi\n";
}

std::string fish_completion() {
  const auto commands = all_commands();
  std::string text =
      "# fish completion for headroom; written by: headroom completion fish\n"
      "function __headroom_at\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  test (count $words) -ge (count $argv); or return 1\n"
      "  for i in (seq (count $argv))\n"
      "    test $words[$i] = $argv[$i]; or return 1\n"
      "  end\n"
      "end\n";
  for (const auto& command : commands)
    text += fmt::format("complete -c headroom -n __fish_use_subcommand -f -a {} -d {}\n", last_word(command.name),
                        fish_quote(command.summary));
  text += "complete -c headroom -n '__headroom_at help' -f -a '" + join(names_of(commands), " ") + "'\n";
  text += "complete -c headroom -n '__headroom_at completion' -f -a 'bash zsh fish'\n";
  return text + fish_commands(commands);
}

Action declare_completion(VerbInput input) {
  auto shell = std::make_shared<std::string>();
  input.app.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell] {
    put(*shell == "bash" ? bash_completion() : *shell == "zsh" ? zsh_completion() : fish_completion());
    return kExitOk;
  };
}

}  // namespace headroom::cli
