// SPDX-License-Identifier: Apache-2.0
// Decides as a pruner would, for tests against Optuna itself. One event per line of standard input, fields between
// tabs:
//   study DIRECTION PRUNER NAME | pruner PRUNER | begin TRIAL | report TRIAL STEP VALUE | end TRIAL STATE
// One line per report comes out: 1 where the trial is to be pruned, else 0.
#include <iostream>
#include <string>
#include <vector>

#include "base/strings.h"
#include "tune/pruner_text.h"
#include "tune/pruners.h"

namespace {

using namespace headroom;
using namespace headroom::tune;

template <class T>
T wanted(std::optional<T> value, const std::string& line) {
  if (value) return *value;
  std::cerr << "what is this: " << line << "\n";
  std::exit(1);
}

std::int64_t whole(const std::string& line, std::string_view field) {
  return wanted(parse_number<std::int64_t>(field), line);
}

PrunerSettings settings(const std::string& line, std::string_view field) {
  const auto read = parse_pruner(field);
  if (!read) std::cerr << read.error().what << " (" << read.error().hint << ")\n";
  return wanted(read ? std::optional(*read) : std::nullopt, line);
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::optional<Pruning> pruning;
  for (std::string line; std::getline(std::cin, line);) {
    auto fields = split(line, '\t');
    fields.resize(4);
    const std::string_view event = fields[0];
    if (event == "study")
      pruning.emplace(settings(line, fields[2]), wanted(direction_of(fields[1]), line), std::string(fields[3]));
    else if (!pruning)
      (void)wanted<int>(std::nullopt, line);
    else if (event == "pruner")
      pruning->change(settings(line, fields[1]));
    else if (event == "begin")
      pruning->begin(whole(line, fields[1]));
    else if (event == "report")
      std::cout << pruning->report(whole(line, fields[1]), whole(line, fields[2]),
                                   wanted(parse_number<double>(fields[3]), line))
                << '\n';
    else if (event == "end")
      pruning->end(whole(line, fields[1]), wanted(trial_state_of(fields[2]), line));
    else
      (void)wanted<int>(std::nullopt, line);
  }
}
