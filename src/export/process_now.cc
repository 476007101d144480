// SPDX-License-Identifier: Apache-2.0
#include "export/process_now.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"
#include "base/strings.h"
#include "base/visible.h"

namespace headroom {

namespace {

std::vector<std::string> targets_of(const ThreadNow& thread) {
  std::vector<std::string> targets;
  for (const WaitTarget& target : thread.waits_for) {
    const bool has_name_of_process = target.kind != WaitKind::kConnection && target.kind != WaitKind::kAccepted;
    const std::string process = target.pids.size() != 1 ? "" : fmt::format("process {}", target.pids.front());
    targets.push_back(words_of(
        target, process.empty() || !has_name_of_process ? process : fmt::format("{} ({})", process, target.name)));
  }
  return targets;
}

std::string doing(const ThreadNow& thread) {
  if (thread.state == 'Z' || thread.state == 'X') return "has ended";
  if (thread.state == 'T') return "is stopped by a signal";
  if (thread.state == 't') return "is stopped by a debugger";
  if (thread.ran || thread.state == 'R') return "runs";
  const auto targets = targets_of(thread);
  const std::string where = targets.empty() ? "" : join(targets, " or ");
  if (thread.state == 'D') return "is blocked in the kernel (state D)" + (where.empty() ? "" : ": it waits " + where);
  if (!where.empty()) return "waits " + where;
  const std::string_view in = thread.waits_in == WaitChannel::kRunning ? "" : words_of(thread.waits_in);
  return std::string(in.empty() ? "sleeps" : in);
}

std::string called(const ThreadNow& thread) {
  return fmt::format("thread {} ({}){}", thread.tid, visible(thread.name), thread.main ? ", main" : "");
}

std::string with_stack(const ThreadNow& thread) {
  std::string text = fmt::format("\n{}: {}{}\n", called(thread), visible(doing(thread)),
                                 thread.holds_gil.value_or(false) ? ", and holds the interpreter's lock (GIL)" : "");
  for (const std::string& frame : thread.frames) text += "    " + visible(frame) + "\n";
  if (thread.cut) text += "    ... and more further out\n";
  return text;
}

// Those of libraries are many, and alike. `plain`: none of them has Python, as far as is known.
std::string others(const std::vector<const ThreadNow*>& threads, bool plain) {
  std::map<std::string, std::vector<const ThreadNow*>> alike;
  for (const ThreadNow* thread : threads) alike[doing(*thread)].push_back(thread);
  std::string text;
  for (const auto& [does, of] : alike) {
    std::vector<std::string> names;
    for (const ThreadNow* thread : of)
      if (std::find(names.begin(), names.end(), visible(thread->name)) == names.end())
        names.push_back(visible(thread->name));
    constexpr std::size_t kMost = 4;
    const bool more = names.size() > kMost;
    names.resize(std::min(names.size(), kMost));
    text +=
        fmt::format("    {} of them ({}{}): {}\n", of.size(), join(names, ", "), more ? ", ..." : "", visible(does));
  }
  return fmt::format("\n{} more thread{}{}\n{}", threads.size(), threads.size() == 1 ? "" : "s",
                     plain ? ", without Python" : "", text);
}

// What of its stacks is not here.
std::string not_shown(const ProcessNow& now) {
  std::string text;
  if (now.torn > 0)
    text += fmt::format("\nThe stack{} of {} thread{} changed while it was read: try again.\n",
                        now.torn == 1 ? "" : "s", now.torn, now.torn == 1 ? "" : "s");
  if (now.left_out > 0)
    text += fmt::format("\nOf {} more thread{} with Python the stack is not shown.\n", now.left_out,
                        now.left_out == 1 ? "" : "s");
  if (now.more_interpreters) text += "\nIt has sub-interpreters, whose stacks are not read.\n";
  return text;
}

std::string children_of(const ProcessNow& now) {
  constexpr std::size_t kMost = 8;
  if (now.children.empty()) return "";
  std::string text = "\nIts children, by headroom stacks --pid:\n";
  for (std::size_t i = 0; i < std::min(kMost, now.children.size()); ++i)
    text += fmt::format("    {}  {}\n", now.children[i].first, visible(now.children[i].second));
  return text + (now.children.size() > kMost ? fmt::format("    and {} more\n", now.children.size() - kMost) : "");
}

}  // namespace

std::string threads_text(const ProcessNow& now) {
  std::string text = fmt::format("process {}: {}{}\n", now.pid, visible(now.command),
                                 now.python.empty() ? "" : fmt::format("  [Python {}]", now.python));
  if (now.python.empty()) {
    text += fmt::format("No Python stacks: {}\n", visible(now.declined));
    if (!now.hint.empty()) text += fmt::format("  {}\n", visible(now.hint));
  }
  std::vector<const ThreadNow*> rest;
  for (const ThreadNow& thread : now.threads)
    if (thread.main || !thread.frames.empty())
      text += with_stack(thread);
    else
      rest.push_back(&thread);
  const bool all_read = !now.python.empty() && not_shown(now).empty();
  if (!rest.empty()) text += others(rest, all_read);
  return text + not_shown(now) + children_of(now);
}

std::string threads_json(const ProcessNow& now) {
  using Json = nlohmann::ordered_json;
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json threads = Json::array(), children = Json::array();
  for (const ThreadNow& thread : now.threads)
    threads.push_back({{"tid", thread.tid},
                       {"name", thread.name},
                       {"main", thread.main},
                       {"state", std::string(1, thread.state)},
                       {"doing", doing(thread)},
                       {"waits_for", thread.ran ? Json::array() : Json(targets_of(thread))},
                       {"holds_gil", thread.holds_gil ? Json(*thread.holds_gil) : Json()},
                       {"frames", thread.frames},
                       {"cut", thread.cut}});
  for (const auto& [pid, command] : now.children) children.push_back({{"pid", pid}, {"command", command}});
  const Json json{{"schema", "headroom.threads/1"},
                  {"pid", now.pid},
                  {"command", now.command},
                  {"python", text_or_null(now.python)},
                  {"declined", text_or_null(now.declined)},
                  {"threads", std::move(threads)},
                  {"torn", now.torn},
                  {"left_out", now.left_out},
                  {"more_interpreters", now.more_interpreters},
                  {"children", std::move(children)}};
  return json_text(json, 1) + "\n";
}

}  // namespace headroom
