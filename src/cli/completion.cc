// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/visible.h"
#include "cli/command_text.h"
#include "cli/environment.h"
#include "cli/verbs.h"

namespace headroom::cli {

namespace {

// The words that a shell may offer on a command line of headroom. The shells ask for it (headroom __complete), so that
// what verbs, options and recordings there are stands here only, and the names of files reach a shell as data.
struct Completion {
  struct Word {
    std::string word, what;
  };
  // What the shell offers beside the words, by its own means. Of a command of the user's own it offers what it would
  // offer there; `command_at` is the index of its first word.
  enum class Also { kNothing, kFiles, kFolders, kCommand };

  std::vector<Word> words;
  Also also = Also::kNothing;
  std::size_t command_at = 0;
  bool first_of_command = false;  // the word that is completed is the command itself
};

// The last part of a command's name: "show" of "headroom batch show".
std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

bool is_recording(const OptionText& option) { return option.value == "RECORDING"; }
bool is_folder(const OptionText& option) { return option.value == "DIR" || option.value == "FOLDER"; }
bool is_file(const OptionText& option) {
  return option.value == "FILE" || option.value == "=FILE" || option.value == "LOG";
}

class Completer {
 public:
  Completer(std::span<const std::string> words, std::span<const std::string> recordings)
      : words_(words.begin(), words.end()), recordings_(recordings) {}

  Completion complete() {
    if (words_.empty()) words_.emplace_back();
    join_equals();
    const std::string first = words_.front();
    if (words_.size() == 1) return verbs_and({"help", "--help", "--version"});
    if (first == "help") return words_.size() == 2 ? verbs_and({}) : Completion{};
    const Verb* verb = find_verb(first);
    if (verb == nullptr) return {};
    const CommandText whole = text_of(*verb);
    const CommandText& command = part_of(whole, {words_.data() + 1, words_.size() - 2});
    if (const auto at = command_begins(*verb, command); at < words_.size()) {
      done_.also = Completion::Also::kCommand;
      done_.command_at = at;
      done_.first_of_command = at + 1 == words_.size();
      return done_;
    }
    if (const OptionText* option = asked_for_value_of(command)) return values_of(*option);
    if (word().starts_with('-')) {
      for (const auto& option : command.options)
        for (const auto& name : option.names) offer(name, option.what);
      return done_;
    }
    for (const auto& part : command.commands) offer(last_word(part.name), part.summary);
    done_.also = Completion::Also::kFiles;
    for (const auto& positional : command.positionals) {
      for (const auto& choice : positional.choices) offer(choice, "");
      if (!positional.choices.empty()) done_.also = Completion::Also::kNothing;
      if (is_recording(positional)) offer_recordings();
    }
    return done_;
  }

 private:
  [[nodiscard]] const std::string& word() const { return words_.back(); }

  // Of "--option=value" bash makes three words, others one: two here, of which the second is completed.
  void join_equals() {
    for (std::size_t i = 1; i < words_.size(); ++i) {
      if (words_[i] != "=" || !words_[i - 1].starts_with("--")) continue;
      words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
      if (i == words_.size()) words_.emplace_back();
      if (i + 1 == words_.size()) {
        joined_ = true;
        break;
      }
      words_[i - 1] += "=" + words_[i];
      words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const auto at = word().find('=');
    if (!word().starts_with("--") || at == std::string::npos) return;
    joined_ = true;
    prefix_ = word().substr(0, at + 1);
    words_.insert(words_.end() - 1, word().substr(0, at));
    words_.back().erase(0, at + 1);
  }

  // Where the words of a command of the user's own begin; past the last word where none is begun.
  [[nodiscard]] std::size_t command_begins(const Verb& verb, const CommandText& command) const {
    for (std::size_t i = 1; i < words_.size(); ++i) {
      if (verb.command_after_dashes && i + 1 < words_.size() && words_[i] == "--") return i + 1;
      if (verb.takes_command && !words_[i].starts_with('-') && value_of(command, i) == nullptr) return i;
    }
    return words_.size();
  }

  // The option that the word at this place is the value of.
  [[nodiscard]] const OptionText* value_of(const CommandText& command, std::size_t at) const {
    const std::string& name = words_[at - 1];
    const bool joined = joined_ && at + 1 == words_.size();
    const auto found = std::find_if(command.options.begin(), command.options.end(), [&](const OptionText& option) {
      return !option.value.empty() && (joined || !option.value.starts_with('=')) &&
             std::find(option.names.begin(), option.names.end(), name) != option.names.end();
    });
    return found == command.options.end() ? nullptr : &*found;
  }
  [[nodiscard]] const OptionText* asked_for_value_of(const CommandText& command) const {
    return value_of(command, words_.size() - 1);
  }

  Completion values_of(const OptionText& option) {
    for (const auto& choice : option.choices) offer(choice, "");
    if (is_recording(option)) offer_recordings();
    if (is_folder(option)) done_.also = Completion::Also::kFolders;
    if (is_file(option) || is_recording(option)) done_.also = Completion::Also::kFiles;
    return done_;
  }

  void offer_recordings() {
    offer("last", "the newest recording");
    for (const auto& name : recordings_)
      if (visible(name) == name) offer(name, "");  // others are no line
  }

  void offer(const std::string& value, const std::string& what) {
    if (value.starts_with(word())) done_.words.push_back({prefix_ + value, visible(what)});
  }

  Completion only(std::initializer_list<const char*> values) {
    for (const char* value : values) offer(value, "");
    return done_;
  }
  Completion verbs_and(std::initializer_list<const char*> more) {
    for (const Verb& verb : verbs())
      if (!verb.hidden) offer(std::string(verb.name), std::string(verb.summary));
    return only(more);
  }

  std::vector<std::string> words_;  // the last is the one that is completed
  std::span<const std::string> recordings_;
  bool joined_ = false;  // the last two words were one, "--option=value"
  std::string prefix_;   // of the last word, where it is "--option=value" and `words_` has the value only
  Completion done_;
};

std::string_view name_of(Completion::Also also) {
  switch (also) {
    case Completion::Also::kNothing:
      return "nothing";
    case Completion::Also::kFiles:
      return "files";
    case Completion::Also::kFolders:
      return "folders";
    case Completion::Also::kCommand:
      return "command";
  }
  return "";
}

// What each shell does with the answer of headroom __complete, whose first line says what to offer beside the words of
// the others: nothing, files, folders, or what the command whose words begin at a place would be offered. Words reach
// the shells as data: nothing in them is expanded, and they are quoted on the command line (in bash by the script: what
// readline calls a quoted file name still has its dollar signs).
constexpr std::string_view kBash = R"(# bash completion for headroom; written by: headroom completion bash
_headroom() {
  local line i
  local -a lines=() words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  words=("${words[@]//\\/}")
  local cur=${words[-1]}
  mapfile -t lines < <(command headroom __complete -- "${words[@]}" 2>/dev/null)
  [[ $cur == '=' ]] && cur=''
  COMPREPLY=()
  for line in "${lines[@]:1}"; do COMPREPLY+=("${line%%$'\t'*}"); done
  case ${lines[0]} in
    files) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur") ;;
    folders) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    command*first) mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur") ;;
    command*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
  esac
  for i in "${!COMPREPLY[@]}"; do
    printf -v line %q "${COMPREPLY[i]}"
    [[ $cur == '~'* ]] && line=${line/#'\~'/'~'}
    COMPREPLY[i]=$line
  done
}
complete -o filenames -o noquote -F _headroom headroom
)";

constexpr std::string_view kZsh = R"(#compdef headroom
# zsh completion for headroom; written by: headroom completion zsh
_headroom() {
  local line
  local -a lines values shown
  lines=("${(@f)$(command headroom __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${(@)lines[2,-1]}"; do
    values+=("${line%%$'\t'*}")
    shown+=("${line/$'\t'/  -- }")
  done
  (($#values)) && compadd -l -d shown -a values
  [[ $PREFIX == --*=* ]] && compset -P '*='
  case $lines[1] in
    files) _files ;;
    folders) _files -/ ;;
    command*) shift ${${=lines[1]}[2]} words; ((CURRENT -= ${${=lines[1]}[2]})); _normal ;;
  esac
}
if [[ $funcstack[1] == _headroom ]]; then _headroom "$@"; else compdef _headroom headroom; fi
)";

constexpr std::string_view kFish = R"(# fish completion for headroom; written by: headroom completion fish
function __headroom_complete
  set -l words (commandline -opc) (commandline -ct)
  set -e words[1]
  set -l lines (command headroom __complete -- $words 2>/dev/null)
  set -l also (string split ' ' -- "$lines[1]")
  set -e lines[1]
  set -l word (string replace -r -- '^--[^=]*=' '' "$words[-1]")
  set -l before (string match -r -- '^--[^=]*=' "$words[-1]")
  printf '%s\n' $lines
  switch "$also[1]"
    case files
      string replace -r -- '^' "$before" (__fish_complete_path $word)
    case folders
      string replace -r -- '^' "$before" (__fish_complete_directories $word)
    case command
      set -l typed (string escape -- $words)
      set typed[-1] "$words[-1]"
      for skipped in (seq 2 $also[2])
        set -e typed[1]
      end
      complete -C (string join ' ' -- $typed)
  end
end
complete -c headroom -f -a '(__headroom_complete)'
)";

// `words` are those after "headroom"; the last one, as far as it is typed, is completed. `recordings` are names on the
// shelf.
Completion complete(std::span<const std::string> words, std::span<const std::string> recordings) {
  return Completer(words, recordings).complete();
}

// For the shells: a line that says what to offer beside, as "files" or "command 3 first", then a line for each word,
// with a tab before what it is.
std::string to_text(const Completion& completion) {
  std::string text(name_of(completion.also));
  if (completion.also == Completion::Also::kCommand) text += fmt::format(" {}", completion.command_at + 1);
  if (completion.first_of_command) text += " first";
  text += '\n';
  for (const auto& [word, what] : completion.words) text += what.empty() ? word + "\n" : word + "\t" + what + "\n";
  return text;
}

}  // namespace

Action declare_complete(VerbInput input) {
  return [&words = input.after_dashes] {
    const auto shelf = users_shelf();
    std::vector<std::string> names = shelf ? shelf->names() : std::vector<std::string>();
    for (std::string& name : names)
      if (name.starts_with('-')) name = shelf->directory() + "/" + name;  // else it would be an option
    put(to_text(complete(words, names)));
    return kExitOk;
  };
}

Action declare_completion(VerbInput input) {
  auto shell = std::make_shared<std::string>();
  input.app.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell] {
    put(*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
    return kExitOk;
  };
}

}  // namespace headroom::cli
