// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/layout.h"
#include "report/palette.h"
#include "report/plan.h"
#include "report/words.h"

namespace headroom::report {

namespace {

std::string labelled(std::string_view label, std::string_view text, const TextOptions& options) {
  return wrap(text, options.width, "   " + pad_right(label, 7), std::string(10, ' '));
}

Nanos ns(double s) { return static_cast<Nanos>(std::min(s, 9e9) * 1e9); }

std::string head(const Option& option, std::size_t number, const TextOptions& options) {
  const std::string title = fmt::format("{}. {}", number, visible(option.title));
  const std::string gain = option.promises ? gain_range(option.gain) : "";
  if (display_width(title) + display_width(gain) + 2 <= options.width)
    return bold(gain.empty() ? title : pad_right(title, options.width - display_width(gain)), options) + gain + "\n";
  return bold(wrap(gain.empty() ? title : fmt::format("{} ({})", title, gain), options.width, "", "   "), options);
}

std::string in_detail(const Plan& plan, const Option& option, std::size_t number, const TextOptions& options) {
  std::string text = head(option, number, options);
  text += labelled("Do", option.apply, options);
  if (options.full) text += labelled("For", cause_words(option), options);
  std::string gain = condition_words(option);
  if (option.promises && option.gain.high > 1) gain = fmt::format("{}, {}", gain_time(option.gain, plan.seconds), gain);
  text += labelled("Gain", gain, options);
  if (option.outcomes > 0) text += labelled("Shown", shown_words(option), options);
  text += labelled("Risk", fmt::format("{}: {}", info(option.safety).name, option.why_safe), options);
  text += labelled("Check", option.verify, options);
  if (options.full) {
    text += labelled("Undo", option.undo, options);
    text += labelled("Effort", option.effort, options);
  }
  return text + "\n";
}

std::string in_a_line(const Option& option, std::size_t number, const TextOptions& options) {
  std::string right = option.promises ? gain_range(option.gain) + ", " : "";
  right += info(option.safety).name;
  const std::string title = fmt::format("{}. {}", number, visible(option.title));
  if (display_width(title) + display_width(right) + 2 > options.width)
    return wrap(fmt::format("{} ({})", title, right), options.width, "", "   ");
  return pad_right(title, options.width - display_width(right)) + right + "\n";
}

constexpr std::size_t kOptionsShown = 6;  // options of a plan, unless it is told in full

std::string options_text(const Plan& plan, std::size_t in_full, const TextOptions& options) {
  std::string text;
  std::size_t number = 0;
  bool short_ones = false;
  for (const Option& option : plan.options) {
    ++number;
    if (number <= in_full || options.full) {
      text += in_detail(plan, option, number, options);
    } else if (number <= kOptionsShown) {
      text += in_a_line(option, number, options);
      short_ones = true;
    }
  }
  if (number > kOptionsShown && !options.full)
    text += fmt::format("{} more with --full.\n", count_of(number - kOptionsShown, "option"));
  if (short_ones) text += "\n";
  return text;
}

std::size_t place_of(const Plan& plan, const std::string& id) {
  const auto at = std::find_if(plan.options.begin(), plan.options.end(), [&](const Option& o) { return o.id == id; });
  return static_cast<std::size_t>(at - plan.options.begin()) + 1;
}

// Only of options that stand on the page.
std::string together_text(const Plan& plan, const TextOptions& options) {
  std::string text;
  std::size_t steps = 0;
  for (const OptionsTogether& step : plan.after) {
    std::vector<std::string> numbers;
    std::size_t last = 0;
    for (const std::string& id : step.options) {
      const std::size_t place = place_of(plan, id);
      last = std::max(last, place);
      numbers.push_back(fmt::format("{}", place));
    }
    if (last > kOptionsShown && !options.full) continue;
    text +=
        wrap(fmt::format("{}: {}, {}", join(numbers, " + "), gain_range(step.gain), gain_time(step.gain, plan.seconds)),
             options.width, "  ", "    ");
    ++steps;
  }
  if (steps < 2) return "";
  return wrap("Together, one after the other, simulated and not added up:", options.width, "", "") + text;
}

std::string projections_text(const Plan& plan, const TextOptions& options) {
  std::string text;
  for (const Projection& p : plan.projections) {
    const std::string low = human_duration(ns(p.low_seconds)), high = human_duration(ns(p.high_seconds));
    text += wrap(low == high ? fmt::format("For {}: {}.", p.what, low)
                             : fmt::format("For {}: between {} and {}.", p.what, low, high),
                 options.width, "", "  ");
  }
  return text;
}

bool promises(const Option& option) { return option.promises && option.gain.high > 1; }

// Of a plan that was written: what tells whether a change kept its promise; "" where there is none.
std::string verify_line(const Plan& plan, std::string_view saved, const TextOptions& options) {
  const auto first = std::find_if(plan.options.begin(), plan.options.end(), promises);
  if (saved.empty() || first == plan.options.end()) return "";
  const bool several = std::any_of(std::next(first), plan.options.end(), promises);
  const std::string line =
      fmt::format("headroom verify {} last{}", typed_word(saved), several ? " --applied " + first->id : "");
  return fmt::format("Next: make one change, record again, and compare at equal work:\n      {}\n",
                     typed(line, options));
}

std::string next(const Plan& plan, std::string_view saved, const TextOptions& options) {
  if (plan.options.empty()) return "";
  if (std::string line = verify_line(plan, saved, options); !line.empty()) return line;
  const std::string name = options.recording.empty() ? typed_word(plan.recording) : options.recording;
  return fmt::format("Next: {}\n      {}\n", typed(fmt::format("headroom plan {} -o plan.json", name), options),
                     options.full ? "make one change, record again, and compare at equal work"
                                  : typed(fmt::format("headroom plan {} --full", name), options));
}

std::string headline_of_no_gain(const std::vector<Option>& options) {
  const auto unbounded =
      std::find_if(options.begin(), options.end(), [](const Option& option) { return option.gain.unbounded; });
  if (unbounded != options.end())
    return fmt::format("What can be gained is {}; what to do about what was found:", unbounded->gain.none);
  const bool gains =
      std::any_of(options.begin(), options.end(), [](const Option& option) { return option.gain.high > 1; });
  return fmt::format("{}; what to do about it:",
                     gains ? "What was found promises no gain" : "No gain is promised for what was found");
}

// Of the first option that promises something and those after it.
std::string headline_of_guesses(std::span<const Option> guesses) {
  const auto most = std::max_element(guesses.begin(), guesses.end(), [](const Option& x, const Option& y) {
    return (x.promises ? x.gain.high : 0) < (y.promises ? y.gain.high : 0);
  });
  const std::string allowed = gain_range(guesses.front().gain), another = gain_range(most->gain);
  return fmt::format("No gain can be promised: several causes look the same in this recording. {}",
                     another != allowed ? fmt::format("The first guess allows {}, another one {}.", allowed, another)
                                        : fmt::format("The best first guess allows {}.", allowed));
}

}  // namespace

std::string gain_range(const Gain& gain) {
  const std::string low = human_factor(gain.low), high = human_factor(gain.high);
  if (high == human_factor(1)) return "no gain";
  if (low == human_factor(1)) return "at most " + high;
  return low == high ? "about " + high : fmt::format("{} to {}", low, high);
}

std::string gain_time(const Gain& gain, double seconds) {
  const std::string best = human_duration(ns(seconds / gain.high)), least = human_duration(ns(seconds / gain.low));
  const std::string now = human_duration(ns(seconds));
  return best == least ? fmt::format("{} instead of {}", best, now)
                       : fmt::format("{} to {} instead of {}", best, least, now);
}

std::string condition_words(const Option& option) {
  const std::string words = option.gain.words();
  if (words.empty()) return "not bounded by this recording";
  const bool of_nothing = option.gain.none.empty() && !(option.promises && option.gain.high > 1);
  return of_nothing ? "none is promised for the time of this job" : words;
}

std::string shown_words(const Option& option) {
  const std::string predictions = count_of(option.outcomes, "earlier prediction");
  if (human_factor(option.gain.low) == human_factor(1))
    return fmt::format("by {} for this cause: it may gain nothing", predictions);
  return fmt::format("by {} for this cause; the low end rests on that", predictions);
}

std::string cause_words(const Option& option) {
  if (!option.cause) return "";
  const std::string_view words = info(*option.cause).words;
  if (option.candidates.empty()) return std::string(words);
  if (option.likeliest == option.cause) return fmt::format("{}, the likeliest cause here", words);
  if (option.likeliest) return fmt::format("{}, less likely here than {}", words, info(*option.likeliest).words);
  return fmt::format("{}, one of {} causes that look the same here", words, option.candidates.size());
}

std::string plan_headline(const Plan& plan) {
  if (!plan.nothing.empty()) return plan.nothing + ".";
  auto first = std::find_if(plan.options.begin(), plan.options.end(), promises);
  if (first == plan.options.end()) return headline_of_no_gain(plan.options);
  // What is told and no matter of speed may cost more than all that is.
  const bool told = plan.options.front().cause && !plan.options.front().promises;
  if (told) first = plan.options.begin();
  const bool is_likely = first->cause && first->likeliest == first->cause;
  const bool place_is_known = first == plan.options.begin();  // of code that stacks name
  if (!first->candidates.empty() && !is_likely && !place_is_known)
    return headline_of_guesses({first, plan.options.end()});
  std::string title = first->title;
  if (title.size() > 1 && (title[1] >= 'a' || title[1] == ' '))
    title[0] = static_cast<char>(title[0] | 0x20);  // "CPU" stays
  if (told) return fmt::format("What to try first: {}.", title);
  const std::string_view of = first->id == "validate_less" ? "with half of its validations" : "at equal work";
  return fmt::format("What to try first: {}, {} {}.", title, gain_range(first->gain), of);
}

std::string to_text(const Plan& plan, const TextOptions& wanted, std::string_view saved) {
  const TextOptions options = clamped(wanted);
  const std::size_t limit = options.width >= 80 ? 40 : 40 * 80 / options.width;
  std::string begin = bold(wrap(plan_headline(plan), options.width, "", ""), options);
  if (plan.goes_on)
    begin += wrap("The recording goes on: all of this is about what it has so far.", options.width, "", "");
  if (!plan.ended_badly.empty())
    begin += wrap(fmt::format("The job did not end well ({}): all of this is about what it did until then.",
                              visible(plan.ended_badly)),
                  options.width, "", "");
  begin += "\n";
  std::string end = together_text(plan, options);
  if (!plan.flips.empty())
    end += wrap(fmt::format("What would change this order: {}.", plan.flips), options.width, "", "  ");
  end += projections_text(plan, options);
  if (!end.empty()) end += "\n";
  end += next(plan, saved, options);
  constexpr std::size_t kInDetail = 3;
  std::string middle;
  for (std::size_t detailed = kInDetail; detailed > 0; --detailed) {
    middle = options_text(plan, detailed, options);
    if (options.full || lines_in(begin) + lines_in(middle) + lines_in(end) <= limit) break;
  }
  return begin + middle + end;
}

}  // namespace headroom::report
