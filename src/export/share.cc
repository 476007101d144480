// SPDX-License-Identifier: Apache-2.0
#include "export/share.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "model/events.h"
#include "model/notes.h"
#include "model/parts.h"
#include "model/python_tracker.h"
#include "model/wait_target.h"
#include "stacks/frame.h"

namespace headroom {

namespace {

// The same number for the same name, so that tasks can still be told apart.
class Numbers {
 public:
  explicit Numbers(std::string_view word) : word_(word) {}
  void replace(Attrs& attrs, const std::string& name) {
    const auto found = attrs.find(name);
    if (found != attrs.end() && !found->second.empty()) replace(found->second);
  }
  void replace(std::string& name) {
    const auto number = numbers_.try_emplace(name, numbers_.size() + 1).first->second;
    name = fmt::format("{} {}", word_, number);
  }

 private:
  std::string_view word_;
  std::map<std::string, std::size_t> numbers_;
};

// "train (/home/u/train.py:3)" as "train (train.py:3)": whose folder it was is nobody's business. Of libraries the part
// of their path is kept by which their frames are told.
std::string without_folders(std::string text) {
  const stacks::Frame frame = stacks::frame_of(text);
  const auto begin = static_cast<std::size_t>(frame.file.data() - text.data());
  if (frame.file.empty()) return text;
  const std::string_view kept = stacks::in_library(frame.file);
  text.erase(begin, kept.empty() ? frame.file.rfind('/') + 1 : frame.file.size() - kept.size());  // npos + 1 is 0
  return text;
}

// Where it connected to, and which files it waited for.
void without_names(Recording& recording) {
  Numbers hosts("host"), files("file");
  std::set<TextId> waits;
  for (const SourceId source : recording.all(SourceKind::kProcessWaits))
    for (const ListRow& row : track_of(recording, source).lists)
      waits.insert(recording.lists[row.list].begin(), recording.lists[row.list].end());
  for (const TextId text : waits) {
    auto target = wait_target_of(recording.texts[text]);
    if (!target) continue;
    if (target->kind == WaitKind::kConnection) hosts.replace(target->name);
    if (target->kind == WaitKind::kFile || target->kind == WaitKind::kFileLock) files.replace(target->name);
    recording.texts[text] = to_text(*target);
  }
}

// Texts stay different from each other, as a recording keeps each once.
void without_folders(std::vector<std::string>& texts) {
  std::set<std::string> taken;
  for (std::string& text : texts) {
    text = without_folders(std::move(text));
    const auto file = text.rfind(" (");
    while (!taken.insert(text).second) text.insert(file == std::string::npos ? 0 : file + 2, "other/");
  }
}

}  // namespace

namespace {

// Each part as if it was alone; which are of one machine can still be told.
Recording parts_to_share(const Recording& recording) {
  const std::vector<RecordingMeta> metas = metas_of_parts(recording);
  const std::vector<PartName> names = part_names(metas);
  Numbers machines("machine");
  std::vector<Recording> parts;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    parts.push_back(to_share(part_of(recording, i)));
    parts.back().meta.host = names[i].machine;
    machines.replace(parts.back().meta.host);
  }
  return merged(std::move(parts));
}

}  // namespace

Recording to_share(Recording recording) {
  if (has_parts(recording)) return parts_to_share(recording);
  RecordingMeta& meta = recording.meta;
  meta.command.clear();
  meta.cwd.clear();
  meta.host.clear();
  meta.boot_id.clear();
  meta.extra.clear();
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    Source& source = recording.sources[i];
    const auto command = source.attrs.find("cmdline");
    const std::string_view tracker = command == source.attrs.end() ? "" : python_tracker_in(command->second);
    for (const char* name : {"cmdline", "user", "uid", "file"}) source.attrs.erase(name);
    if (!tracker.empty()) source.attrs["cmdline"] = tracker;  // no worker, for who reads it, too
    if (source.kind == SourceKind::kCgroup) source.key = fmt::format("cgroup {}", i);
  }
  without_names(recording);
  without_folders(recording.texts);
  std::erase_if(recording.events, [](const Event& event) {
    const auto note = of_event<events::Note>(event);  // an exception may quote data
    return is<events::Parameter>(event) || (note && note->text.starts_with(kNoteException));
  });
  Numbers tasks("task"), groups("group");
  for (Event& event : recording.events) {
    event.attrs.erase("argv");
    event.attrs.erase("reason");  // may quote what a task printed
    tasks.replace(event.attrs, "task");
    groups.replace(event.attrs, "group");
  }
  return recording;
}

}  // namespace headroom
