// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

// What a shell may offer for a word of a command line of headroom. The shells ask for it (headroom __complete), so that
// what verbs, options and recordings there are stands here only, and the names of files reach a shell as data.
namespace headroom::cli {

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

// `words` are those after "headroom"; the last one, as far as it is typed, is completed. `recordings` are names on the
// shelf.
[[nodiscard]] Completion complete(std::span<const std::string> words, std::span<const std::string> recordings);

// For the shells: a line that says what to offer beside, as "files" or "command 3 first", then a line for each word,
// with a tab before what it is.
[[nodiscard]] std::string to_text(const Completion& completion);

}  // namespace headroom::cli
