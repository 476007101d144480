// SPDX-License-Identifier: Apache-2.0
#include "export/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/human.h"
#include "base/json.h"
#include "base/visible.h"
#include "stacks/frame.h"

namespace headroom {

namespace {

using stacks::WeightedStack;

double weight_of(const WeightedStack& stack, const StacksOptions& options) {
  return stack.idle + (options.busy ? stack.busy : 0);
}

// Five of them lie between any two modules.
bool is_import_machinery(std::string_view frame) {
  return stacks::frame_of(frame).file.starts_with("<frozen importlib");
}

// One frame on one way from the outermost function; children in the order of their names.
struct Flame {
  double idle = 0, busy = 0;
  std::map<std::string, Flame, std::less<>> below;
};

Flame flame_of(const std::vector<WeightedStack>& profile, const StacksOptions& options) {
  Flame root;
  for (const WeightedStack& stack : profile) {
    const double busy = options.busy ? stack.busy : 0;
    Flame* flame = &root;
    flame->idle += stack.idle, flame->busy += busy;
    for (const std::string& frame : stack.frames) {
      if (is_import_machinery(frame)) continue;
      flame = &flame->below[frame];
      flame->idle += stack.idle, flame->busy += busy;
    }
  }
  return root;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : visible(text)) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

// "load (train.py:41)", or what else tells what it was at.
std::string place_of(const WeightedStack& stack, const stacks::Families& families) {
  std::vector<stacks::Frame> frames;
  for (const std::string& frame : stack.frames) frames.push_back(stacks::frame_of(frame));
  const stacks::StackKind kind = families.kind_of(frames);
  if (kind.where.empty()) return "code that is not named";
  if (kind.line <= 0 || !kind.where.ends_with(')')) return visible(kind.where);
  return visible(fmt::format("{}:{})", std::string_view(kind.where).substr(0, kind.where.size() - 1), kind.line));
}

constexpr double kWidth = 1200, kRow = 18, kMargin = 10, kLetter = 6.6;

std::size_t depth_of(const Flame& flame, double scale, double narrowest) {
  std::size_t depth = 0;
  for (const auto& [name, below] : flame.below)
    if ((below.idle + below.busy) * scale >= narrowest) depth = std::max(depth, 1 + depth_of(below, scale, narrowest));
  return depth;
}

// UTF-8 is not cut within a character.
std::string cut(std::string_view text, std::size_t letters) {
  if (text.size() <= letters) return std::string(text);
  if (letters < 4) return "";
  std::size_t end = letters - 2;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return std::string(text.substr(0, end)) + "..";
}

class FlameGraph {
 public:
  FlameGraph(BlockOutput& output, double all, double head, double narrowest)
      : output_(output), all_(all), scale_((kWidth - 2 * kMargin) / all), head_(head), narrowest_(narrowest) {}

  Result<void> draw(const Flame& flame, double left, std::size_t row) {
    double x = left;
    for (const auto& [name, below] : flame.below) {
      const double time = below.idle + below.busy, width = time * scale_;
      if (width >= narrowest_) {
        HR_TRYV(box(name, below, x, row, width));
        HR_TRYV(draw(below, x, row + 1));
      }
      x += width;
    }
    return {};
  }
  [[nodiscard]] double scale() const { return scale_; }

 private:
  Result<void> box(const std::string& name, const Flame& flame, double x, std::size_t row, double width) {
    const double time = flame.idle + flame.busy, idle = flame.idle / time, y = head_ + static_cast<double>(row) * kRow;
    std::string said = fmt::format("{}: {} ({} of the time shown)", name,
                                   human_duration(static_cast<Nanos>(time * 1e9)), human_percent(time / all_));
    if (flame.busy > 0) said += fmt::format("; the GPU was idle for {} of it", human_percent(idle));
    output_.text() += fmt::format(
        "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\" "
        "fill=\"rgb({:.0f},{:.0f},{:.0f})\"/>",
        escaped(said), x, y, std::max(0.3, width - 0.5), kRow - 1, 70 + 165 * idle, 160 - 10 * idle, 110 - 40 * idle);
    const std::string text = cut(stacks::words(stacks::frame_of(name)),
                                 static_cast<std::size_t>((width - 6) / kLetter > 0 ? (width - 6) / kLetter : 0));
    if (!text.empty())
      output_.text() += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", x + 3, y + 13, escaped(text));
    output_.text() += "</g>\n";
    return output_.line_done();
  }

  BlockOutput& output_;
  double all_, scale_, head_, narrowest_;
};

}  // namespace

std::string stacks_json(const std::vector<WeightedStack>& profile, const std::string& why_none) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const WeightedStack& stack : profile)
    list.push_back({{"frames", stack.frames}, {"idle_seconds", stack.idle}, {"busy_seconds", stack.busy}});
  const Json json{{"schema", "headroom.stacks/1"},
                  {"why_none", why_none.empty() ? Json() : Json(why_none)},
                  {"stacks", std::move(list)}};
  return json_text(json, 1) + "\n";
}

Result<void> write_collapsed(const std::vector<WeightedStack>& profile, const StacksOptions& options,
                             const Output& output) {
  BlockOutput block(output);
  for (const WeightedStack& stack : profile) {
    const auto ms = std::llround(1000 * weight_of(stack, options));
    if (ms <= 0 || stack.frames.empty()) continue;
    bool first = true;
    for (std::string frame : stack.frames) {
      if (is_import_machinery(frame)) continue;
      std::replace_if(
          frame.begin(), frame.end(), [](char c) { return c == ';' || c == '\n'; }, '_');
      block.text() += (std::exchange(first, false) ? "" : ";") + frame;
    }
    block.text() += fmt::format(" {}\n", ms);
    HR_TRYV(block.line_done());
  }
  return block.flush();
}

Result<void> write_functions(const std::vector<WeightedStack>& profile, const stacks::Families& families,
                             const StacksOptions& options, const Output& output) {
  std::map<std::string, double, std::less<>> sums;
  double all = 0;
  for (const WeightedStack& stack : profile) {
    sums[place_of(stack, families)] += weight_of(stack, options);
    all += weight_of(stack, options);
  }
  std::vector<std::pair<std::string, double>> places(sums.begin(), sums.end());
  std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  BlockOutput block(output);
  const auto line = [&](double time, const std::string& what) {
    const std::string share = all > 0 ? human_percent(time / all) : "";
    block.text() += fmt::format("{:>9} {:>6}  {}\n", human_duration(static_cast<Nanos>(time * 1e9)), share, what);
    return block.line_done();
  };
  block.text() += fmt::format("What the job was at {}; of readings that were partly busy an estimate\n",
                              options.busy ? "while it held its GPUs" : "while its GPUs were idle");
  constexpr std::size_t kShown = 20;
  double shown = 0;
  const std::size_t some = places.size() > kShown + 1 ? kShown : places.size();
  for (std::size_t i = 0; i < some; ++i) {
    shown += places[i].second;
    HR_TRYV(line(places[i].second, places[i].first));
  }
  if (some < places.size()) HR_TRYV(line(all - shown, fmt::format("{} others", places.size() - some)));
  HR_TRYV(line(all, "in all"));
  return block.flush();
}

Result<void> write_speedscope(const std::vector<WeightedStack>& profile, const StacksOptions& options,
                              const Output& output) {
  using Json = nlohmann::ordered_json;
  Json frames = Json::array(), samples = Json::array(), weights = Json::array();
  std::map<std::string, std::size_t, std::less<>> numbers;
  double all = 0;
  for (const WeightedStack& stack : profile) {
    const double weight = weight_of(stack, options);
    if (weight <= 0) continue;
    Json sample = Json::array();
    for (const std::string& frame : stack.frames) {
      const auto [entry, is_new] = numbers.try_emplace(frame, numbers.size());
      if (is_new) frames.push_back({{"name", frame}});
      sample.push_back(entry->second);
    }
    samples.push_back(std::move(sample));
    weights.push_back(weight);
    all += weight;
  }
  Json json{{"$schema", "https://www.speedscope.app/file-format-schema.json"},
            {"exporter", "headroom"},
            {"shared", {{"frames", std::move(frames)}}},
            {"profiles",
             {{{"type", "sampled"},
               {"name", options.busy ? "seconds of the GPU" : "seconds in which the GPU was idle"},
               {"unit", "seconds"},
               {"startValue", 0},
               {"endValue", all},
               {"samples", std::move(samples)},
               {"weights", std::move(weights)}}}},
            {"name", options.title}};
  return output(json_text(json) + "\n");
}

Result<void> write_flame_graph(const std::vector<WeightedStack>& profile, const StacksOptions& options,
                               const Output& output) {
  const Flame root = flame_of(profile, options);
  const double all = root.idle + root.busy;
  BlockOutput block(output);
  const double head = options.embedded ? 0 : 46;  // for its title
  FlameGraph graph(block, std::max(1e-9, all), head, options.narrowest);
  const double height = head + kRow * static_cast<double>(depth_of(root, graph.scale(), options.narrowest)) + kMargin;
  const std::string what =
      options.busy ? "what the job was at, by the time of its GPUs" : "what the job was at while its GPUs were idle";
  if (options.embedded)
    block.text() +=
        fmt::format("<svg class=\"flame\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\"><title>{}: {}</title>\n", kWidth,
                    height, escaped(what), all > 0 ? human_duration(static_cast<Nanos>(all * 1e9)) : "none");
  else
    block.text() +=
        std::string(kFlameGraphBeginning) +
        fmt::format(
            "xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
            "height=\"{1:.0f}\" "
            "role=\"img\">\n<title>{2}</title>\n<style>svg{{background:#fff;font:11px monospace}}text{{fill:#111}}"
            "text.h{{font-size:13px}}@media(prefers-color-scheme:dark){{svg{{background:#181818}}text.h{{fill:#ddd}}}}<"
            "/"
            "style>\n"
            "<text class=\"h\" x=\"{3:.0f}\" y=\"18\">{2}: {4}{5}</text>\n<text class=\"h\" x=\"{3:.0f}\" "
            "y=\"36\">{6}</text>\n",
            kWidth, height, escaped(what), kMargin, all > 0 ? human_duration(static_cast<Nanos>(all * 1e9)) : "none",
            options.title.empty() ? "" : " of " + escaped(options.title),
            options.busy ? "orange: the GPU was idle, green: kernels ran; of readings that were partly busy an estimate"
                         : "as wide as the time; of readings that were partly busy an estimate");
  HR_TRYV(graph.draw(root, kMargin, 0));
  block.text() += "</svg>\n";
  return block.flush();
}

std::vector<std::pair<std::string, double>> innermost_functions(const std::vector<WeightedStack>& profile,
                                                                const StacksOptions& options, std::size_t most) {
  std::map<std::string, double, std::less<>> sums;
  for (const WeightedStack& stack : profile)
    if (!stack.frames.empty()) sums[stacks::words(stacks::frame_of(stack.frames.back()))] += weight_of(stack, options);
  std::vector<std::pair<std::string, double>> functions(sums.begin(), sums.end());
  std::erase_if(functions, [](const auto& one) { return one.second <= 0; });
  std::stable_sort(functions.begin(), functions.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (functions.size() > most) functions.resize(most);
  return functions;
}

}  // namespace headroom
