// SPDX-License-Identifier: Apache-2.0
#include "marks/marks_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/visible.h"
#include "host/proc_parse.h"
#include "host/processes.h"

namespace headroom::marks {

namespace {

constexpr std::size_t kWindow = 256;              // records that are read at once
constexpr std::size_t kMostPending = 1U << 17;    // records of all rings at one look; what is left is read at the next
constexpr std::size_t kMostText = 1024;           // bytes of a name or a text; our writers cut earlier
constexpr std::size_t kMostTextBytes = 1U << 18;  // of one ring that are remembered
constexpr std::size_t kMostEntries = 4096;        // entries of the directory
constexpr Nanos kHeadPatience = 10 * kSecond;     // a process that has made its ring writes its header at once
constexpr int kSearches = 4;                      // of all processes, in one look
constexpr int kLastRounds = 64;                   // full rings at the end
constexpr Nanos kAhead = 10 * kSecond;            // a look may take as long; what is later is no mark

Fd open_ring(int directory, const std::string& name) {
  Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (fd && (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid())) fd.reset();
  return fd;
}

std::size_t read_at(int fd, std::span<std::byte> bytes, std::uint64_t offset) {
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

}  // namespace

MarksReader::MarksReader(MarksOptions options)
    : options_(std::move(options)),
      directory_(::open(options_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
      proc_("/proc"),
      ns_per_tick_(host::read_kernel_facts(proc_, true).ns_per_tick) {}

void MarksReader::read(Nanos at, RecordingSink& sink) {
  searches_left_ = kSearches;
  find_files(at, sink);
  for (auto& [key, process] : processes_) process.gone = process.gone || !is_there(process.pid, process.start_ticks);
  for (const auto& file : files_)
    if (!file->head) read_head(*file, at, sink);
  std::erase_if(files_, [](const auto& file) { return !file->fd; });
  for (int rounds = last_ ? kLastRounds : 1; rounds > 0 && drain_all(at, sink); --rounds) {
  }
  bury_the_gone(at, sink);
  for (auto& [key, process] : processes_)
    for (auto& [which, track] : process.tracks) last_ ? track.finish(at, sink) : track.write(at, sink);
  before_ = at;
}

// Whether there may be more.
bool MarksReader::drain_all(Nanos at, RecordingSink& sink) {
  bool more = false;
  for (const auto& file : files_) {
    if (!file->head) continue;
    drain(*file, at, sink);
    more = more || !file->drained;
  }
  // The first is not always the same one: where there is more than is read at a look, all get their turn.
  if (files_.size() > 1) std::rotate(files_.begin(), files_.begin() + 1, files_.end());
  feed_all(at, sink);
  return more;
}

void MarksReader::find_files(Nanos at, RecordingSink& sink) {
  const int again = directory_ ? ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  DIR* listing = again >= 0 ? ::fdopendir(again) : nullptr;
  if (listing == nullptr) {
    if (again >= 0) ::close(again);
    return;
  }
  while (const dirent* entry = ::readdir(listing)) {
    std::string name = entry->d_name;
    if (!name.ends_with(".marks") || names_.contains(name)) continue;
    if (files_.size() >= options_.most_files || names_.size() >= kMostEntries) {
      if (!std::exchange(too_many_said_, true))
        sink.add_loss(make_loss(LossKind::kMarkCut, 1,
                                fmt::format("the marks of {} processes are read already", options_.most_files)));
      break;
    }
    auto file = std::make_unique<File>();
    errno = 0;
    file->fd = open_ring(directory_.get(), name);
    if (errno == EMFILE || errno == ENFILE) break;  // they come another time
    names_.insert(name);
    file->name = std::move(name);
    file->found = at;
    if (file->fd) files_.push_back(std::move(file));
  }
  ::closedir(listing);
}

void MarksReader::ignore(File& file, const std::string& why, RecordingSink& sink) {
  sink.add_loss(make_loss(LossKind::kMarkCut, 1, fmt::format("a ring of marks cannot be read: {}", why)));
  file.fd.reset();
}

void MarksReader::read_head(File& file, Nanos at, RecordingSink& sink) {
  std::byte bytes[sizeof(headroom_marks_header)];
  const auto parse = [&] { return parse_ring_head(std::span(bytes).first(read_at(file.fd.get(), bytes, 0))); };
  auto head = parse();
  // Once its beginning was there, all of it is there for another read: bytes of one may be of different instants.
  if (head || head.error().code != Errc::kBusy) head = parse();
  if (!head) {
    if (head.error().code != Errc::kBusy || at - file.found > kHeadPatience) ignore(file, head.error().what, sink);
    return;
  }
  file.process = process_of(*head);
  if (file.process == nullptr) return;
  file.head = *head;
  file.cursor = RingCursor(head->slots);
}

bool MarksReader::is_there(std::int64_t pid, std::int64_t start_ticks) {
  const auto text = proc_.read(fmt::format("{}/stat", pid).c_str());
  const auto stat = text ? host::parse_pid_stat(*text) : std::nullopt;
  return stat && stat->state != 'Z' && stat->state != 'X' && (start_ticks == 0 || stat->start_ticks == start_ticks);
}

// The number that a process of another pid namespace has here.
std::optional<std::int64_t> MarksReader::find_elsewhere(const RingHead& head) {
  const auto listed = proc_.list_numbers(".");
  if (!listed) return std::nullopt;
  for (const std::int64_t pid : *listed) {
    if (!is_there(pid, head.start_ticks)) continue;
    const auto status = proc_.read(fmt::format("{}/status", pid).c_str());
    const auto numbers =
        status ? host::parse_numbers(host::parse_pid_status(*status).ns_pids) : std::vector<std::int64_t>{};
    if (!numbers.empty() && numbers.back() == head.pid) return pid;
  }
  return std::nullopt;
}

// Nothing where it has to wait for the next look.
MarksReader::Process* MarksReader::process_of(const RingHead& head) {
  std::int64_t pid = head.pid;
  bool there = is_there(pid, head.start_ticks);
  if (!there && head.start_ticks != 0 && !processes_.contains({pid, head.start_ticks})) {
    if (searches_left_-- <= 0 && !last_) return nullptr;
    const auto elsewhere = find_elsewhere(head);
    there = elsewhere.has_value();
    pid = elsewhere.value_or(pid);
  }
  Process& process = processes_[{pid, head.start_ticks}];
  process.pid = pid;
  process.start_ticks = head.start_ticks;
  process.gone = !there;
  return &process;
}

// Bytes of one read may be of different instants, in any order. What stood there in whole at the first read is whole in
// the second one, unless it is being written over: then its sequence is another one in the third.
void MarksReader::read_records(const File& file, std::vector<headroom_mark>& records) const {
  const auto read_from_slot = [&](std::vector<headroom_mark>& into) {
    into.assign(std::min<std::size_t>(kWindow, file.head->slots), {});
    const std::uint32_t slot = file.cursor.slot();
    const std::size_t to_the_end = std::min<std::size_t>(into.size(), file.head->slots - slot);
    const auto bytes = std::as_writable_bytes(std::span(into));
    const std::size_t first = to_the_end * sizeof(headroom_mark);
    if (read_at(file.fd.get(), bytes.first(first), file.head->record_at(slot)) == first && first < bytes.size())
      read_at(file.fd.get(), bytes.subspan(first), file.head->record_at(0));
  };
  std::vector<headroom_mark> before, after;
  read_from_slot(before);
  const auto is_new = [&](const headroom_mark& record) { return record.sequence > file.cursor.next(); };
  if (std::none_of(before.begin(), before.end(), is_new)) {
    records = std::move(before);
    return;
  }
  read_from_slot(records);
  read_from_slot(after);
  for (std::size_t i = 0; i < records.size(); ++i)
    records[i].sequence = before[i].sequence == after[i].sequence ? before[i].sequence : 0;
}

void MarksReader::drain(File& file, Nanos at, RecordingSink& sink) {
  file.drained = false;
  std::vector<headroom_mark> records;
  RingMarks taken;
  for (std::size_t passed = 0; passed < file.head->slots && pending_.size() < kMostPending;) {
    read_records(file, records);
    taken.marks.clear();
    const std::size_t moved = file.cursor.take(records, at, last_ || file.process->gone, taken);
    passed += moved;
    for (const headroom_mark& mark : taken.marks) {
      if (mark.at < options_.since || mark.at > at + kAhead)
        ++taken.bad;
      else
        pending_.push_back({mark, &file});
    }
    file.drained = moved < records.size();
    if (file.drained) break;
  }
  count(LossKind::kMarkLost, taken.lost, file, at, sink);
  // The ends of phases may be among what was lost: none of this ring is known to be open any more.
  if (taken.lost > 0)
    for (auto& [which, track] : file.process->tracks)
      if (which.second == file.head->via) track.take({.kind = Mark::Kind::kPhase, .at = before_});
  count(LossKind::kMarkCut, taken.bad, file, at, sink);
}

void MarksReader::count(LossKind kind, std::int64_t number, const File& file, Nanos at, RecordingSink& sink) const {
  if (number == 0) return;
  const Process& process = *file.process;
  std::optional<LossPlace> place;
  if (process.source != kNoSource) place = LossPlace{std::min(before_, at), at, process.source};
  sink.add_loss(make_loss(kind, number, fmt::format("first of process {}", process.pid), place));
}

void MarksReader::feed_all(Nanos at, RecordingSink& sink) {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const auto& a, const auto& b) { return a.mark.at < b.mark.at; });
  // Marks newer than this look wait, so that all rings merge in order of time.
  const auto now = [&](const Pending& one) { return last_ || one.file->process->gone || one.mark.at <= at; };
  for (const Pending& pending : pending_)
    if (now(pending) && !feed(pending, sink)) count(LossKind::kMarkCut, 1, *pending.file, at, sink);
  std::erase_if(pending_, now);
}

bool MarksReader::feed(const Pending& pending, RecordingSink& sink) {
  File& file = *pending.file;
  if (file.text_bytes > kMostTextBytes) {
    file.texts.clear();
    file.text_bytes = 0;
  }
  const headroom_mark& raw = pending.mark;
  Mark mark{.kind = static_cast<Mark::Kind>(raw.kind_and_thread >> 24), .at = raw.at, .value = raw.value};
  if (mark.kind != Mark::Kind::kStep && raw.name != HEADROOM_NO_NAME) {
    mark.name = text_of(file, raw.name);
    if (mark.name.empty()) return false;
  }
  if (mark.kind == Mark::Kind::kParameter) {
    if (!(raw.value >= 0 && raw.value < static_cast<double>(file.head->names_bytes))) return false;
    mark.text = text_of(file, static_cast<std::uint32_t>(raw.value));
    mark.value = 0;
  }
  MarkTrack* track = track_of(file, raw.kind_and_thread & 0xffffff, sink);
  if (track == nullptr) return false;
  track->take(mark);
  took_any_ = true;
  return true;
}

std::string_view MarksReader::text_of(File& file, std::uint32_t number) const {
  if (number >= file.head->names_bytes) return "";
  if (const auto known = file.texts.find(number); known != file.texts.end()) return known->second;
  std::byte bytes[sizeof(std::uint16_t) + kMostText];
  const auto there = std::span(bytes).first(std::min<std::size_t>(sizeof bytes, file.head->names_bytes - number));
  const auto text = ring_text(there.first(read_at(file.fd.get(), there, file.head->names_at() + number)));
  if (!text) return "";
  const std::string& kept = file.texts.emplace(number, visible(*text)).first->second;
  file.text_bytes += kept.size();
  return kept;
}

MarkTrack* MarksReader::track_of(const File& file, std::uint32_t thread, RecordingSink& sink) {
  Process& process = *file.process;
  const std::string& via = file.head->via;
  const auto known = process.tracks.find({thread, via});
  if (known != process.tracks.end()) return &known->second;
  if (tracks_ >= options_.most_tracks) return nullptr;
  const std::string pid = fmt::format("{}", process.pid);
  const Nanos start = process.start_ticks * ns_per_tick_;
  const std::string key = fmt::format("{}/{}", pid, start);
  if (process.source == kNoSource && process.start_ticks != 0)
    process.source =
        sink.add_source({SourceKind::kProcess, key, kNoSource, {{"pid", pid}, {"start_ns", fmt::format("{}", start)}}});
  ++tracks_;
  Source source{SourceKind::kMarks,
                fmt::format("{}/{}/{}", key, thread, via),
                process.source,
                {{"pid", pid}, {"tid", fmt::format("{}", thread)}, {"via", via}}};
  const Within within = via == "nvtx" ? Within::kGoesOn : Within::kEndsToo;
  return &process.tracks.try_emplace({thread, via}, std::move(source), within).first->second;
}

void MarksReader::bury_the_gone(Nanos at, RecordingSink& sink) {
  if (last_) return;  // at the end everything goes
  for (auto entry = processes_.begin(); entry != processes_.end();) {
    Process& process = entry->second;
    const auto is_its = [&](const auto& file) { return file->process == &process; };
    const bool drained =
        std::all_of(files_.begin(), files_.end(), [&](const auto& file) { return !is_its(file) || file->drained; });
    if (!process.gone || !drained) {
      ++entry;
      continue;
    }
    for (auto& [which, track] : process.tracks) {
      track.take({.kind = Mark::Kind::kPhase, .at = at});
      track.finish(at, sink);
    }
    tracks_ -= process.tracks.size();
    for (const auto& file : files_) {
      if (!is_its(file)) continue;
      ::unlinkat(directory_.get(), file->name.c_str(), 0);
      names_.erase(file->name);
    }
    std::erase_if(files_, is_its);
    entry = processes_.erase(entry);
  }
}

}  // namespace headroom::marks
