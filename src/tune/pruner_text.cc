// SPDX-License-Identifier: Apache-2.0
#include "tune/pruner_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/strings.h"
#include "tune/pruner_forms.h"

namespace headroom::tune {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// The last of dotted names: "optuna.pruners.MedianPruner".
std::string_view last_name(std::string_view dotted) { return dotted.substr(dotted.rfind('.') + 1); }

// A value between commas, as it stands there.
struct Written {
  std::string_view name;  // "": by its place
  std::string_view value;
};

// NAME, or NAME(ARGUMENTS).
struct Call {
  std::string_view name;
  std::vector<Written> arguments;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // The whole text as one call; its arguments are cut, not read.
  Result<Call> call() {
    Call call;
    call.name = word();
    if (peek() == '=') {  // "pruner=MedianPruner()", as it stands in create_study()
      ++at_;
      call.name = word();
    }
    if (call.name.empty()) return unexpected("the name of a pruner");
    if (peek() == '(') {
      ++at_;
      HR_TRYV(arguments(call));
    }
    if (peek() == ',') ++at_;
    if (peek() != '\0' || at_ < text_.size()) return unexpected("the end");
    return call;
  }

 private:
  Result<void> arguments(Call& call) {
    while (peek() != ')') {
      Written argument;
      const std::size_t before = at_;
      argument.name = word();
      if (argument.name.empty() || peek() != '=') {
        argument.name = "";
        at_ = before;
      } else {
        ++at_;
      }
      argument.value = value();
      if (argument.value.empty()) return unexpected("a value or ')'");
      if (argument.name.empty() && !call.arguments.empty() && !call.arguments.back().name.empty())
        return fail(Errc::kInvalidInput,
                    fmt::format("'{}' has no name, and stands after an argument that has one", argument.value));
      call.arguments.push_back(argument);
      if (peek() == ',')
        ++at_;
      else if (peek() != ')')
        return unexpected("',' or ')'");
    }
    ++at_;
    return {};
  }

  // To the next comma or bracket that is not within brackets or quotes.
  std::string_view value() {
    (void)peek();
    const std::size_t begin = at_;
    int depth = 0;
    char quote = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '(') {
        ++depth;
      } else if (depth == 0 && (c == ',' || c == ')' || c == '#')) {
        break;
      } else if (c == ')') {
        --depth;
      }
    }
    return trim(text_.substr(begin, at_ - begin));
  }

  std::string_view word() {
    (void)peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // The next character after blanks and comments; 0 at the end.
  char peek() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
        ++at_;
      else
        return text_[at_];
    }
    return '\0';
  }

  tl::unexpected<Error> unexpected(std::string_view wanted) {
    const bool over = at_ >= text_.size();
    return fail(Errc::kInvalidInput,
                over ? fmt::format("{} is missing at the end", wanted)
                     : fmt::format("{} is wanted where '{}' stands", wanted, text_.substr(at_, 20)),
                "write it as in Python, \"HyperbandPruner(1, 100, 3)\", or its name alone: none, median, hyperband");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// ---------------------------------------------------------------------------------------------------------- values

// "'auto'" -> "auto"; what has no quotes gives nothing.
std::optional<std::string_view> quoted(std::string_view text) {
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) return std::nullopt;
  return text.substr(1, text.size() - 2);
}

// A number of Python: 10_000, 1e-3, .5, +3, float("-inf"), math.inf.
template <class T>
std::optional<T> number(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  std::string_view plain = digits;
  if (plain.starts_with('+')) plain.remove_prefix(1);
  if constexpr (std::is_same_v<T, double>) {
    const bool minus = plain.starts_with('-');
    const std::string_view size = minus ? plain.substr(1) : plain;
    if (size == "math.inf" || size == "np.inf" || size == "numpy.inf") return minus ? -kInfinity : kInfinity;
    if (plain.starts_with("float(") && plain.ends_with(')')) {
      const std::string name = lower(quoted(trim(plain.substr(6, plain.size() - 7))).value_or(""));
      if (name == "inf" || name == "+inf") return kInfinity;
      if (name == "-inf") return -kInfinity;
    }
    const auto value = parse_number<double>(plain);
    return value && std::isfinite(*value) ? value : std::nullopt;
  } else {
    return parse_number<T>(plain);
  }
}

template <class T>
struct Plain {
  using type = T;
  static constexpr bool kOptional = false;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
  static constexpr bool kOptional = true;
};

std::string possible(const PrunerArgument& argument, bool whole) {
  std::string text = whole ? "a whole number" : "a number";
  if (argument.most < kInfinity)
    text += fmt::format(" from {} to {}", argument.least, argument.most);
  else if (argument.least > -kInfinity)
    text += fmt::format(" of {} or more", argument.least);
  if (argument.absent == "auto") text += ", or 'auto'";
  if (argument.absent == "None") text += ", or None";
  return text;
}

Result<void> set(PrunerSettings& settings, const PrunerArgument& argument, std::string_view text) {
  return std::visit(
      [&](auto field) -> Result<void> {
        using Field = Plain<std::remove_reference_t<decltype(settings.*field)>>;
        using Number = typename Field::type;
        if constexpr (Field::kOptional) {
          const bool absent = argument.absent == "auto" ? quoted(text) == "auto" : text == argument.absent;
          if (absent) return settings.*field = std::nullopt, Result<void>{};
        }
        const auto value = number<Number>(text);
        if (!value || static_cast<double>(*value) < argument.least || static_cast<double>(*value) > argument.most)
          return fail(Errc::kInvalidInput, fmt::format("{} is {}, and can be {}", argument.name, text,
                                                       possible(argument, std::is_integral_v<Number>)));
        settings.*field = *value;
        return {};
      },
      argument.field);
}

// ------------------------------------------------------------------------------------------------------- arguments

Result<const PrunerArgument*> named(std::string_view name, std::span<const PrunerArgument> arguments) {
  std::vector<std::string_view> names;
  for (const PrunerArgument& argument : arguments) {
    if (argument.name == name) return &argument;
    names.push_back(argument.name);
  }
  const std::string_view meant = closest(name, names);
  const std::vector<std::string> words(names.begin(), names.end());
  return fail(Errc::kInvalidInput, fmt::format("no argument '{}'", name),
              !meant.empty()  ? fmt::format("did you mean {}?", meant)
              : words.empty() ? "it takes none"
                              : "it takes " + join(words, ", "));
}

Result<void> set_all(PrunerSettings& settings, std::span<const Written> written,
                     std::span<const PrunerArgument> arguments) {
  std::vector<const PrunerArgument*> given;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const PrunerArgument* argument = nullptr;
    if (!written[i].name.empty()) {
      HR_TRY(argument, named(written[i].name, arguments));
    } else if (i < arguments.size() && arguments[i].place == PrunerArgument::Place::kAnywhere) {
      argument = &arguments[i];
    } else {
      return fail(Errc::kInvalidInput, fmt::format("'{}' is one argument too many", written[i].value));
    }
    if (std::ranges::find(given, argument) != given.end())
      return fail(Errc::kInvalidInput, fmt::format("{} stands there twice", argument->name));
    given.push_back(argument);
    HR_TRYV(set(settings, *argument, written[i].value));
  }
  for (const PrunerArgument& argument : arguments)
    if (argument.when == PrunerArgument::When::kRequired && std::ranges::find(given, &argument) == given.end())
      return fail(Errc::kInvalidInput, fmt::format("{} is missing; it has no default", argument.name));
  return {};
}

// What Optuna refuses over and above the range of each argument.
Result<void> check(const PrunerSettings& settings) {
  const bool hyperband = settings.kind == PrunerKind::kHyperband;
  if (settings.bootstrap_count > 0 && !(hyperband ? settings.max_resource : settings.min_resource))
    return fail(Errc::kInvalidInput, fmt::format("bootstrap_count cannot be set while {} is 'auto'",
                                                 hyperband ? "max_resource" : "min_resource"));
  if (settings.kind != PrunerKind::kThreshold) return {};
  if (!settings.lower && !settings.upper) return fail(Errc::kInvalidInput, "one of lower and upper is needed");
  if (settings.lower.value_or(-kInfinity) > settings.upper.value_or(kInfinity))
    return fail(Errc::kInvalidInput,
                fmt::format("lower is {}, which is over upper, {}", *settings.lower, *settings.upper));
  return {};
}

// --------------------------------------------------------------------------------------------------------- pruners

// "SuccessiveHalvingPruner" and "successive_halving" are one name.
std::string folded(std::string_view name) {
  std::string text;
  for (const char c : lower(name))
    if (c != '_') text += c;
  if (text.ends_with("pruner") && text.size() > 6) text.resize(text.size() - 6);
  return text;
}

// The next step after a name that is none; `name` is folded.
std::string names_like(std::string_view name) {
  std::vector<std::string> names{"PatientPruner"}, shorts;
  for (const PrunerForm& form : pruner_forms()) names.emplace_back(form.class_name);
  for (const std::string& n : names) shorts.push_back(folded(n));
  const std::string_view meant = closest(name, {shorts.begin(), shorts.end()});
  const auto at = std::ranges::find(shorts, meant) - shorts.begin();
  return meant.empty() ? "write one of Optuna's out: " + join(names, ", ")
                       : fmt::format("did you mean {}?", names[static_cast<std::size_t>(at)]);
}

Result<PrunerSettings> plain_pruner(const Call& call) {
  const std::string name = folded(last_name(call.name));
  for (const PrunerForm& form : pruner_forms()) {
    if (name != folded(form.class_name) && name != folded(form.short_name)) continue;
    PrunerSettings settings = form.defaults;
    Result<void> done = set_all(settings, call.arguments, form.arguments);
    if (done) done = check(settings);
    if (!done) return tl::unexpected(within(form.class_name, std::move(done).error()));
    return settings;
  }
  if (name == "wilcoxon") return fail(Errc::kUnsupported, "the WilcoxonPruner cannot be replayed");
  return fail(Errc::kInvalidInput, fmt::format("unknown pruner '{}'", call.name), names_like(name));
}

bool is_patient(const Call& call) { return folded(last_name(call.name)) == "patient"; }

Result<PrunerSettings> patient_pruner(const Call& call) {
  std::vector<Written> rest = call.arguments;
  const auto wrapped = std::ranges::find_if(
      rest, [&](const Written& w) { return w.name == "wrapped_pruner" || (w.name.empty() && &w == rest.data()); });
  if (wrapped == rest.end())
    return fail(Errc::kInvalidInput, "PatientPruner: wrapped_pruner is missing; it has no default",
                "PatientPruner(None, patience=2) stops what does not improve, whatever other trials do");
  PrunerSettings settings;
  const std::string_view inner = wrapped->value;
  if (inner != "None") {
    HR_TRY(const Call inside, Scanner(inner).call());
    if (is_patient(inside))
      return fail(Errc::kUnsupported, "a PatientPruner within a PatientPruner cannot be replayed");
    HR_TRY(settings, plain_pruner(inside));
  }
  rest.erase(wrapped);
  const Result<void> done = set_all(settings, rest, patient_arguments());
  if (!done) return tl::unexpected(within("PatientPruner", done.error()));
  // Around a NopPruner nothing is ever pruned; around None, kNone with patience, whatever stagnates is.
  if (settings.kind == PrunerKind::kNone && inner != "None") return PrunerSettings{};
  return settings;
}

// --------------------------------------------------------------------------------------------------------- writing

std::string python(double value) {
  return std::isinf(value) ? fmt::format("float(\"{}\")", value) : fmt::to_string(value);
}
std::string python(std::int64_t value) { return fmt::to_string(value); }
template <class T>
std::string python(const std::optional<T>& value) {
  return python(*value);
}

void write(std::vector<std::string>& words, const PrunerSettings& settings, const PrunerSettings& defaults,
           std::span<const PrunerArgument> arguments) {
  for (const PrunerArgument& argument : arguments)
    std::visit(
        [&](auto field) {
          const auto& value = settings.*field;
          if (value == defaults.*field && argument.when == PrunerArgument::When::kOptional) return;
          if constexpr (Plain<std::remove_cvref_t<decltype(value)>>::kOptional)
            if (!value) return;
          words.push_back(fmt::format("{}={}", argument.name, python(value)));
        },
        argument.field);
}

}  // namespace

Result<PrunerSettings> parse_pruner(std::string_view text) {
  HR_TRY(const Call call, Scanner(text).call());
  return is_patient(call) ? patient_pruner(call) : plain_pruner(call);
}

std::string pruner_text(const PrunerSettings& settings) {
  const PrunerForm& form = pruner_form(settings.kind);
  std::vector<std::string> words;
  write(words, settings, form.defaults, form.arguments);
  const std::string inner = fmt::format("{}({})", form.class_name, join(words, ", "));
  if (!settings.patience) return inner;
  words = {settings.kind == PrunerKind::kNone ? "None" : inner};
  write(words, settings, {}, patient_arguments());
  return fmt::format("PatientPruner({})", join(words, ", "));
}

}  // namespace headroom::tune
