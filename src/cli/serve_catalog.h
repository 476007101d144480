// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/growing_recording.h"
#include "cli/serve_box.h"
#include "report/overview_json.h"

namespace headroom::cli {

// Everything that `headroom serve` can show: the recordings of their folder, the batches that these are of, and what
// was named on the command line. Of what stays as it is, only its size and time are looked at.
class Catalog {
 public:
  struct Recording {
    report::Overview::Recording shown;
    FileTrace trace{}, told{};  // as it was read; as it was when listeners were last told of it
    Nanos read_at = 0;
    [[nodiscard]] std::optional<FileState> state() const {
      return shown.entry.summary ? std::optional(shown.entry.summary->state) : std::nullopt;
    }
    [[nodiscard]] bool goes_on() const { return state() == FileState::kRecording; }
    [[nodiscard]] const std::string& path() const { return shown.entry.path; }
  };
  struct Changes {
    bool list = false;                    // something came, went, or has another state
    std::vector<std::string> recordings;  // keys of those that grew or ended
    std::vector<std::string> batches;     // keys of those that went on
    std::vector<std::string> studies;     // keys of those whose file was written to
  };

  // kNotFound: nothing is called so.
  [[nodiscard]] Result<void> name(const std::string& what);

  // What `box` says when it is asked is shown first, under one key whichever recording it is. It must outlive this.
  void watch(const ServedBox& box) { box_ = &box; }

  // Reads what has changed since the last time. Of a recording that grows it is told when `due` says so of its path.
  [[nodiscard]] Changes look(const std::function<bool(const std::string& path)>& due);
  [[nodiscard]] Nanos looked_at() const { return looked_at_; }  // boottime

  [[nodiscard]] report::Overview overview() const;
  [[nodiscard]] const Recording* recording(const std::string& key) const;  // nullptr: there is none
  // Where one lay that was there before; nullptr: there was none.
  [[nodiscard]] const std::string* gone(const std::string& key) const;
  [[nodiscard]] const Recording* newest_live() const;  // likewise
  [[nodiscard]] const std::string* batch_folder(const std::string& key) const;
  [[nodiscard]] const std::string* study_storage(const std::string& key) const;  // as it was named

 private:
  struct Batch {
    report::Overview::Batch shown;
    FileTrace trace{};
    Nanos recorded = 0;  // Unix time at which its last recording began
  };
  struct Study {
    report::Overview::Study shown;
    std::string storage, file;  // as it was named; "" where it is no file
    FileTrace trace{};
    Nanos told_at = 0;  // boottime
  };
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] Recording read(const std::string& path) const;
  void find_batches(const Recording& recording);
  void add_batch(const std::string& folder, const Recording& recording);
  [[nodiscard]] static Batch new_batch(const std::string& folder);
  void look_at_batches(Changes& changes);
  void look_at_studies(Changes& changes);

  const ServedBox* box_ = nullptr;
  ServedBox::Shown of_box_;         // at the last look
  std::vector<std::string> named_;  // paths
  std::vector<Recording> recordings_;
  std::map<std::string, std::string> gone_;  // paths of those that have vanished, by key
  std::map<std::string, Batch> batches_;     // by folder
  std::vector<Study> studies_;
  std::set<std::string> searched_;  // paths of recordings whose batch need not be looked for again
  Nanos looked_at_ = 0;
};

}  // namespace headroom::cli
