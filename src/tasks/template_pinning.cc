// SPDX-License-Identifier: Apache-2.0
#include "tasks/template_pinning.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/strings.h"

namespace headroom::tasks {

namespace {

constexpr std::string_view kMask = "CUDA_VISIBLE_DEVICES";

// Options and keys that choose a GPU, without dashes in front and with '_' for '-'. --gpus and --devices are mostly
// counts (Lightning, Ray), so they are not here.
constexpr std::array<std::string_view, 13> kKeys{
    "gpu",       "gpu_id",   "gpu_ids",     "gpu_device_id",  "gpu_device", "gpu_idx", "gpu_index",
    "device_id", "main_gpu", "cuda_device", "cuda_device_id", "cuda",       "device"};

// A piece of argv[word].
struct Token {
  std::size_t word = 0, begin = 0, end = 0;
};
// A value that contradicts the mask, and what fits there.
struct Conflict {
  std::optional<std::size_t> variable;  // of the environment; else a part of argv
  Token whole, value;
  std::string instead, why;
};

class Finder {
 public:
  explicit Finder(const TaskSpec& task) : task_(task) {}

  std::vector<Conflict> run() {
    if (task_.resources.gpus == 0) return {};
    for (std::size_t i = 0; i < task_.environment.size(); ++i) {
      if (task_.environment[i].first != kMask || mask_agrees(task_.environment[i].second)) continue;
      found_.push_back({i, {}, {}, "", why_mask()});
    }
    tokenize();
    for (std::size_t i = 0; i < tokens_.size(); ++i) look_at(i);
    return std::move(found_);
  }

 private:
  [[nodiscard]] std::string_view text(const Token& token) const {
    return std::string_view(task_.argv[token.word]).substr(token.begin, token.end - token.begin);
  }

  void tokenize() {
    for (std::size_t word = 0; word < task_.argv.size(); ++word) {
      if (is_script(word))
        tokenize_script(word);
      else
        tokens_.push_back({word, 0, task_.argv[word].size()});
    }
  }
  // The text after `sh -c`.
  [[nodiscard]] bool is_script(std::size_t word) const {
    if (word < 2) return false;
    const std::string& option = task_.argv[word - 1];
    const std::string& program = task_.argv[0];
    return option.size() > 1 && option[0] == '-' && option[1] != '-' && option.ends_with('c') &&
           program.ends_with("sh");
  }
  void tokenize_script(std::size_t word) {
    constexpr std::string_view kBetween = " \t\n;&|()<>";
    const std::string& line = task_.argv[word];
    for (std::size_t at = 0; (at = line.find_first_not_of(kBetween, at)) != std::string::npos;) {
      const std::size_t end = std::min(line.find_first_of(kBetween, at), line.size());
      tokens_.push_back(without_quotes({word, at, end}));
      at = end;
    }
  }
  [[nodiscard]] Token without_quotes(Token token) const {
    const auto is_quote = [&](std::size_t at) {
      return task_.argv[token.word][at] == '"' || task_.argv[token.word][at] == '\'';
    };
    while (token.begin < token.end && is_quote(token.begin)) ++token.begin;
    while (token.begin < token.end && is_quote(token.end - 1)) --token.end;
    return token;
  }

  void look_at(std::size_t i) {
    const Token& token = tokens_[i];
    const std::string_view whole = text(token);
    const auto equals = whole.find('=');
    const std::string_view key = whole.substr(0, equals);
    if (equals != std::string_view::npos) {
      const Token value = without_quotes({token.word, token.begin + equals + 1, token.end});
      if (key == kMask) {
        if (!mask_agrees(text(value))) found_.push_back({{}, token, value, "{gpu_uuid}", why_mask()});
      } else {
        look_at_value(token, value, is_gpu_key(key));
      }
    } else if (key.starts_with('-') && is_gpu_key(key) && i + 1 < tokens_.size()) {
      look_at_value(token, tokens_[i + 1], true);
      taken_ = i + 1;
    } else if (i != taken_) {
      look_at_value(token, token, false);
    }
  }

  static bool is_gpu_key(std::string_view key) {
    const auto begin = std::min(key.find_first_not_of('-'), key.size());
    // "trainer.gpu_id" of Hydra as "gpu_id"
    const auto dot = key.find_last_of('.');
    std::string name = lower(key.substr(dot == std::string_view::npos ? begin : dot + 1));
    std::replace(name.begin(), name.end(), '-', '_');
    return std::find(kKeys.begin(), kKeys.end(), name) != kKeys.end();
  }

  // A value that names GPUs: "1", "0,1", "cuda:1"; numbers alone only where the key says so.
  void look_at_value(const Token& whole, Token value, bool gpu_key) {
    bool prefixed = false;
    for (const std::string_view prefix : {"cuda:", "gpu:", "/gpu:", "/device:gpu:"}) {
      if (!lower(text(value)).starts_with(prefix)) continue;
      value.begin += prefix.size();
      prefixed = true;
      break;
    }
    if ((!prefixed && !gpu_key) || ordinals_agree(text(value))) return;
    found_.push_back({{}, whole, value, prefixed && task_.resources.gpus > 1 ? "0" : "{gpu}", why_ordinal()});
  }

  [[nodiscard]] bool ordinals_agree(std::string_view value) const {
    if (value == "{gpu_index}" || value == "{gpu_uuid}" || value == "{slot}") return false;
    for (const std::string_view part : split(value, ',')) {
      const auto ordinal = parse_number<int>(trim(part));
      if (ordinal && *ordinal >= task_.resources.gpus) return false;
    }
    return true;  // seen by the task, or no ordinal: "auto", "cuda", -1 for the CPU
  }
  static bool mask_agrees(std::string_view value) {
    return value == "{gpu_uuid}" || value == "{gpu_index}" || value.starts_with("$CUDA_VISIBLE_DEVICES") ||
           value.starts_with("${{CUDA_VISIBLE_DEVICES");
  }

  [[nodiscard]] std::string why_ordinal() const {
    if (task_.resources.gpus == 1) return "the task sees one GPU, and its number there is 0";
    return fmt::format("the task sees {} GPUs, and their numbers there are 0 to {}", task_.resources.gpus,
                       task_.resources.gpus - 1);
  }
  static std::string why_mask() { return "it replaces the mask by which the task is given its GPU"; }

  const TaskSpec& task_;
  std::vector<Token> tokens_;
  std::optional<std::size_t> taken_;  // a token that was the value of the option before
  std::vector<Conflict> found_;
};

SecondPin described(const TaskSpec& task, const Conflict& conflict) {
  if (conflict.variable) {
    const auto& [name, value] = task.environment[*conflict.variable];
    return {"environment", name + "=" + value, "", conflict.why};
  }
  const Token& whole = conflict.whole;
  const Token& value = conflict.value;
  const std::string where = task.shell ? "shell line" : fmt::format("argument {}", whole.word);
  const std::string& begin = task.argv[whole.word];
  const std::string& end = task.argv[value.word];
  std::string before = begin.substr(whole.begin, (value.word == whole.word ? value.begin : whole.end) - whole.begin);
  if (value.word != whole.word) before += " " + end.substr(0, value.begin);
  // Up to the end of what the value stands in: "cuda:1", not "cuda:1 && …".
  return {where, before + end.substr(value.begin, value.end - value.begin), before + conflict.instead, conflict.why};
}

}  // namespace

std::vector<SecondPin> second_pins(const TaskSpec& task) {
  std::vector<SecondPin> pins;
  for (const Conflict& conflict : Finder(task).run()) pins.push_back(described(task, conflict));
  return pins;
}

Result<void> settle_second_pins(TaskSpec& task, PinPolicy policy) {
  if (policy == PinPolicy::kAllow) return {};
  std::vector<Conflict> conflicts = Finder(task).run();
  if (conflicts.empty()) return {};
  if (policy == PinPolicy::kRefuse) {
    const SecondPin pin = described(task, conflicts.front());
    const std::string place = task.line > 0 ? fmt::format("{}:{}: ", task.file, task.line) : "";
    return fail(Errc::kInvalidInput,
                fmt::format("{}task {} pins a GPU itself: {} ({}): {}", place, task.name, pin.text, pin.where, pin.why),
                pin.instead.empty() ? fmt::format("remove {} from the environment, or use --second-pin rewrite", kMask)
                                    : fmt::format("write {}, or use --second-pin rewrite", pin.instead));
  }
  // From the back, so that places before stay where they are.
  std::reverse(conflicts.begin(), conflicts.end());
  for (const Conflict& conflict : conflicts) {
    if (conflict.variable) {
      task.environment.erase(task.environment.begin() + static_cast<std::ptrdiff_t>(*conflict.variable));
      if (*conflict.variable < task.from_env_file) --task.from_env_file;
    } else {
      task.argv[conflict.value.word].replace(conflict.value.begin, conflict.value.end - conflict.value.begin,
                                             conflict.instead);
    }
  }
  return {};
}

}  // namespace headroom::tasks
