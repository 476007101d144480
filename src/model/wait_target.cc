// SPDX-License-Identifier: Apache-2.0
#include "model/wait_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace headroom {

namespace {

constexpr std::array kNames{std::pair(WaitKind::kConnection, std::string_view("connection")),
                            std::pair(WaitKind::kAccepted, std::string_view("accepted")),
                            std::pair(WaitKind::kUnixSocket, std::string_view("unix_socket")),
                            std::pair(WaitKind::kPipe, std::string_view("pipe")),
                            std::pair(WaitKind::kFullPipe, std::string_view("full_pipe")),
                            std::pair(WaitKind::kChild, std::string_view("child")),
                            std::pair(WaitKind::kFile, std::string_view("file")),
                            std::pair(WaitKind::kTerminal, std::string_view("terminal")),
                            std::pair(WaitKind::kDevice, std::string_view("device")),
                            std::pair(WaitKind::kFileLock, std::string_view("file_lock"))};
constexpr std::string_view kPids = "pids=";

}  // namespace

std::string_view words_of(WaitChannel channel) {
  switch (channel) {
    case WaitChannel::kRunning:
      return "runs";
    case WaitChannel::kPoll:
      return "waits for events";
    case WaitChannel::kFutex:
      return "waits on a lock or event";
    case WaitChannel::kSleep:
      return "sleeps for a time";
    case WaitChannel::kPipe:
      return "waits at a pipe or local socket";
    case WaitChannel::kSocket:
      return "waits for a connection";
    case WaitChannel::kDisk:
      return "waits for the disk";
    case WaitChannel::kNetworkFs:
      return "waits for a network file system";
    case WaitChannel::kChild:
      return "waits for a child";
    case WaitChannel::kTerminal:
      return "waits for the terminal";
    case WaitChannel::kOther:
    case WaitChannel::kUnknown:
      return "";
  }
  return "";
}

std::string words_of(const WaitTarget& target, const std::string& other_end) {
  const std::string whom = other_end.empty() ? "processes called " + target.name : other_end;
  const std::string_view the_file =
      target.name.starts_with("file ") ? "" : "the file ";  // "file 1": its name was hidden
  switch (target.kind) {
    case WaitKind::kConnection:
      return "on a connection to " + target.name + (other_end.empty() ? "" : ", " + other_end);
    case WaitKind::kAccepted:
      return fmt::format("at its own port {}, for who connects to it{}", target.name,
                         other_end.empty() ? "" : ": " + other_end);
    case WaitKind::kUnixSocket:
      return "on a socket to " + whom;
    case WaitKind::kPipe:
      return "on a pipe from " + whom;
    case WaitKind::kFullPipe:
      return "on a full pipe to " + whom;
    case WaitKind::kChild:
      return "for the end of " + whom;
    case WaitKind::kFile:
      return fmt::format("for {}{}", target.name.ends_with('/') ? "files in " : the_file, target.name);
    case WaitKind::kTerminal:
      return "at the terminal " + target.name;
    case WaitKind::kDevice:
      return "for the driver, in " + target.name;
    case WaitKind::kFileLock:
      return fmt::format("at a lock on {}{}{}", the_file, target.name,
                         other_end.empty() ? "" : ", which " + other_end + " has");
  }
  return "";
}

std::string to_text(const WaitTarget& target) {
  std::string text;
  for (const auto& [kind, name] : kNames)
    if (kind == target.kind) text = name;
  if (!target.pids.empty()) text += fmt::format(" {}{}", kPids, fmt::join(target.pids, ","));
  return text + " " + target.name;
}

std::optional<WaitTarget> wait_target_of(std::string_view text) {
  const auto word = [&] {
    const std::string_view first = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), first.size() + 1));
    return first;
  };
  const std::string_view kind_name = word();
  for (const auto& [kind, name] : kNames) {
    if (name != kind_name) continue;
    WaitTarget target{kind, ""};
    if (text.starts_with(kPids)) {
      for (const std::string_view pid : split(word().substr(kPids.size()), ',')) {
        const auto number = parse_number<std::int64_t>(pid);
        if (!number) return std::nullopt;
        target.pids.push_back(*number);
      }
    }
    target.name = text;
    return target;
  }
  return std::nullopt;
}

}  // namespace headroom
