// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/counted_times.h"
#include "cli/growing_recording.h"
#include "cli/open_recording.h"
#include "diagnose/explain.h"
#include "record/growing.h"
#include "report/live_findings.h"
#include "serve/route.h"
#include "stacks/families.h"

namespace headroom::cli {

// Recordings that are looked at, kept in memory while their files stay as they are. One that grows is read again, but
// reading and explaining take at most one part in 50 of a core: until then it is shown as it was.
class Library {
 public:
  using Text = std::shared_ptr<const std::string>;

  // `rule`: what stands while a recording grows. kInvalidInput: the user's families cannot be used.
  [[nodiscard]] static Result<Library> create(const report::LiveRule& rule);

  [[nodiscard]] Result<Text> view(const std::string& path, const serve::ViewQuery& query);
  [[nodiscard]] Result<Text> why(const std::string& path);
  [[nodiscard]] Result<Text> plan(const std::string& path);
  [[nodiscard]] Result<Text> report(const std::string& path, const serve::ViewQuery& query);  // of its window
  [[nodiscard]] Result<Text> stacks(const std::string& path, const serve::ViewQuery& query);  // likewise
  [[nodiscard]] Result<Text> comparison(const std::string& a, const std::string& b);          // its document
  [[nodiscard]] Result<Text> trace(const std::string& path);                                  // Chrome's
  // Of one that grows up to 15 seconds old, so that frequent scrapes cost a thousandth of a core.
  enum class Metrics { kOpenMetrics, kPrometheus, kDcgm };
  [[nodiscard]] Result<Text> metrics(const std::string& path, Metrics form);

  // Whether what grew may be read again by now.
  [[nodiscard]] bool due(const std::string& path) const;
  void forget(const std::string& path);  // it is another one now, though its file may be the same
  void forget();                         // lets go of what is large

 private:
  struct Kept {
    OpenedRecording opened;
    std::optional<GrowingRecording> growing;  // where what was opened grows: read when it first has
    Explanation whole;
    FileTrace trace{};
    Nanos read_at = 0;

    [[nodiscard]] const Recording& recording() const {
      return growing && growing->has_read() ? growing->recording() : opened.recording;
    }
    [[nodiscard]] bool grows() const { return opened.file_bytes && goes_on(recording().meta); }
  };
  struct Scrape {
    FileTrace trace{};
    Nanos of = 0;  // Kept::read_at of what it tells
    Text text;
  };
  [[nodiscard]] Kept* kept_of(const std::string& path);       // nullptr: it is not
  [[nodiscard]] Result<Kept*> open(const std::string& path);  // until the next one is opened
  [[nodiscard]] Result<void> read(const std::string& path, Kept& kept);
  void look_for_findings(const Kept& kept);
  [[nodiscard]] std::vector<report::StandingFinding> now(const Kept& kept) const;
  [[nodiscard]] bool due_for_scrape(const std::string& path) const;
  [[nodiscard]] bool is_fresh(const std::string& path, const Kept& kept) const;
  [[nodiscard]] ExplainOptions explaining(const Kept& kept) const;
  [[nodiscard]] Result<Text> remembered(const Kept& kept, const std::string& what,
                                        const std::function<Result<std::string>()>& make);

  std::vector<stacks::FamilyRule> families_;
  std::list<std::pair<std::string, Kept>> kept_;   // by path, the last one asked for first
  std::list<std::pair<std::string, Text>> texts_;  // likewise, of recordings that have ended; by id, time and question
  std::map<std::string, Scrape> scrapes_;          // by form and path
  CountedTimes counted_;                           // for scrapes
  report::LiveRule rule_;
  std::map<std::string, report::LiveFindings> findings_;  // of recordings that grow, kept or not; by id
  struct Cost {
    Nanos at = 0;   // boottime, when it was read
    Nanos cpu = 0;  // of reading and explaining
  };
  std::map<std::string, Cost> costs_;  // by path
};

}  // namespace headroom::cli
