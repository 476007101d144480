// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "host/proc_dir.h"
#include "marks/mark_track.h"
#include "marks/ring.h"
#include "model/losses.h"
#include "model/reader.h"

namespace headroom::marks {

struct MarksOptions {
  std::string directory;  // where the job makes its rings
  Nanos since = 0;        // a mark from before then is none
  std::size_t most_files = 256;
  std::size_t most_tracks = 256;  // at a time
};

// The marks of a job, from the rings of its processes: for a thread of its own, a few times a second.
//
// Sources: kMarks per process, thread and way, and the process's kProcess. A ring is removed once its process is gone
// and all of it was read; what that process had open then ends. Losses: mark_lost, mark_cut, mark_short.
class MarksReader final : public Reader {
 public:
  explicit MarksReader(MarksOptions options);

  void read(Nanos at, RecordingSink& sink) override;
  // Nothing is waited for in the next read, and nothing is taken afterwards.
  void end_with_next_read() { last_ = true; }
  [[nodiscard]] bool took_any() const { return took_any_; }  // marks

 private:
  struct Process {
    std::int64_t pid = 0, start_ticks = 0;
    bool gone = false;
    SourceId source = kNoSource;                                        // once it is announced
    std::map<std::pair<std::uint32_t, std::string>, MarkTrack> tracks;  // by thread and way
  };
  struct File {
    std::string name;
    Fd fd;
    std::optional<RingHead> head;
    RingCursor cursor{1};
    Process* process = nullptr;
    Nanos found = 0;
    bool drained = false;  // all of it was read at this look
    std::unordered_map<std::uint32_t, std::string> texts;
    std::size_t text_bytes = 0;
  };
  struct Pending {
    headroom_mark mark{};
    File* file = nullptr;
  };

  void find_files(Nanos at, RecordingSink& sink);
  void read_head(File& file, Nanos at, RecordingSink& sink);
  void ignore(File& file, const std::string& why, RecordingSink& sink);
  [[nodiscard]] Process* process_of(const RingHead& head);
  [[nodiscard]] std::optional<std::int64_t> find_elsewhere(const RingHead& head);
  [[nodiscard]] bool is_there(std::int64_t pid, std::int64_t start_ticks);
  bool drain_all(Nanos at, RecordingSink& sink);
  void drain(File& file, Nanos at, RecordingSink& sink);
  void read_records(const File& file, std::vector<headroom_mark>& records) const;
  void feed_all(Nanos at, RecordingSink& sink);
  [[nodiscard]] bool feed(const Pending& pending, RecordingSink& sink);  // false: it is no mark
  [[nodiscard]] MarkTrack* track_of(const File& file, std::uint32_t thread, RecordingSink& sink);
  [[nodiscard]] std::string_view text_of(File& file, std::uint32_t number) const;
  void count(LossKind kind, std::int64_t number, const File& file, Nanos at, RecordingSink& sink) const;
  void bury_the_gone(Nanos at, RecordingSink& sink);

  MarksOptions options_;
  Fd directory_;
  host::ProcDir proc_;
  Nanos ns_per_tick_;
  bool last_ = false, took_any_ = false;
  std::vector<std::unique_ptr<File>> files_;
  std::set<std::string, std::less<>> names_;                            // of files_, and of what is no ring
  std::map<std::pair<std::int64_t, std::int64_t>, Process> processes_;  // by pid and start
  std::vector<Pending> pending_;                                        // not fed yet
  std::size_t tracks_ = 0;
  int searches_left_ = 0;  // in this look
  bool too_many_said_ = false;
  Nanos before_ = 0;  // the look before
};

}  // namespace headroom::marks
