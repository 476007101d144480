// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analyze/stack_profile.h"
#include "base/decimal.h"
#include "base/ids.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/compare.h"
#include "cli/config.h"
#include "cli/environment.h"
#include "cli/growing_recording.h"
#include "cli/predictions.h"
#include "cli/report.h"
#include "diagnose/explain.h"
#include "export/chrome.h"
#include "export/stacks.h"
#include "exposition/families.h"
#include "exposition/formats.h"
#include "plan/plan.h"
#include "report/compare_document.h"
#include "report/json.h"
#include "report/plan.h"
#include "report/view_json.h"
#include "view/view.h"

namespace headroom::cli {

namespace {

constexpr std::size_t kMostKept = 2, kMostTexts = 16, kMostScrapes = 16;
constexpr std::size_t kLargestText = 8 << 20;  // that is remembered
constexpr std::size_t kLargestTrace = std::size_t{512} << 20;

// Nothing is wrong with the question.
Error unreadable(Error error) {
  if (error.code == Errc::kInvalidInput) error.code = Errc::kCorrupt;
  return error;
}

// The recording's name as `headroom why` takes it: those of the shelf have short names.
std::string name_for_commands(const std::string& path) {
  const auto shelf = users_shelf();
  const bool shelved = shelf && path.starts_with(shelf->directory() + "/");
  return typed_word(shelved ? path.substr(shelf->directory().size() + 1) : path);
}

std::optional<Nanos> age_of(const RecordingMeta& meta) {
  if (!goes_on(meta) || meta.boot_id != boot_id()) return std::nullopt;
  return std::max<Nanos>(0, boottime_now() - meta.end);
}

}  // namespace

Result<Library> Library::create(const report::LiveRule& rule) {
  Library library;
  library.rule_ = rule;
  HR_TRY(library.families_, users_families());
  return library;
}

bool Library::due(const std::string& path) const {
  const auto found = costs_.find(path);
  return found == costs_.end() ||
         boottime_now() - found->second.at >= std::max(kLookEvery, kLookCostParts * found->second.cpu);
}

bool Library::due_for_scrape(const std::string& path) const {
  constexpr Nanos kScrapeParts = 2500, kOldest = 15 * kSecond;  // the list of recordings costs as much again
  const auto found = costs_.find(path);
  if (found == costs_.end()) return true;
  return due(path) && boottime_now() - found->second.at >= std::min(kOldest, kScrapeParts * found->second.cpu);
}

// A growing recording that was silent for long may have lost its writer.
bool Library::is_fresh(const std::string& path, const Kept& kept) const {
  if (kept.trace == trace_of(path)) return !kept.grows() || boottime_now() - kept.read_at < kSilent;
  return kept.grows() && !due(path);
}

ExplainOptions Library::explaining(const Kept& kept) const {
  ExplainOptions options;
  options.path = kept.opened.path;
  options.file_bytes = kept.opened.file_bytes;
  options.families = families_;
  return options;
}

// All of it, or of what was read before and grew what came since.
Result<void> Library::read(const std::string& path, Kept& kept) {
  const Nanos cpu = thread_cpu_now();
  kept.trace = trace_of(path);
  if (kept.grows()) {
    if (!kept.growing) kept.growing.emplace(path, metrics_not_viewed(), kept.recording().meta.id);
    HR_TRYV(kept.growing->read_on());
    kept.opened.recording = {};
  } else {
    auto opened = open_recording(path, {}, {.leave_out = metrics_not_viewed()});
    if (!opened) return tl::unexpected(unreadable(opened.error()));
    kept.opened = std::move(*opened);
    kept.growing.reset();
  }
  kept.whole = explain(kept.recording(), explaining(kept));
  look_for_findings(kept);
  kept.read_at = boottime_now();
  constexpr std::size_t kMostPaths = 1000;
  if (costs_.size() > kMostPaths) costs_.clear();
  costs_[path] = {kept.read_at, thread_cpu_now() - cpu};
  return {};
}

// Findings made for an earlier question count, too.
void Library::look_for_findings(const Kept& kept) {
  const std::string& id = kept.recording().meta.id;
  if (!kept.grows()) {
    findings_.erase(id);
    return;
  }
  constexpr std::size_t kMostGrowing = 64;
  if (findings_.size() >= kMostGrowing && !findings_.contains(id)) findings_.clear();
  const auto recent = explain_last_minutes(kept.recording(), explaining(kept));
  (void)findings_.try_emplace(id, rule_).first->second.look(kept.whole, recent ? *recent : kept.whole);
}

std::vector<report::StandingFinding> Library::now(const Kept& kept) const {
  const auto found = findings_.find(kept.recording().meta.id);
  return kept.grows() && found != findings_.end() ? found->second.now() : std::vector<report::StandingFinding>();
}

Library::Kept* Library::kept_of(const std::string& path) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == path; });
  return found == kept_.end() ? nullptr : &found->second;
}

Result<Library::Kept*> Library::open(const std::string& path) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == path; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    if (is_fresh(path, found->second)) return &found->second;
    if (found->second.grows() && read(path, found->second)) return &found->second;
    kept_.pop_front();  // another one lies there
  }
  if (kept_.size() >= kMostKept) kept_.pop_back();
  kept_.emplace_front(path, Kept());
  if (auto done = read(path, kept_.front().second); !done) {
    kept_.pop_front();
    return tl::unexpected(std::move(done).error());
  }
  return &kept_.front().second;
}

Result<Library::Text> Library::remembered(const Kept& kept, const std::string& what,
                                          const std::function<Result<std::string>()>& make) {
  const bool ended = !kept.grows();
  const std::string name = fmt::format("{} {} {}", kept.opened.path, fmt::join(kept.trace, " "), what);
  const auto found = std::find_if(texts_.begin(), texts_.end(), [&](const auto& one) { return one.first == name; });
  if (found != texts_.end()) {
    texts_.splice(texts_.begin(), texts_, found);
    return found->second;
  }
  HR_TRY(std::string made, make());
  auto text = std::make_shared<const std::string>(std::move(made));
  if (!ended || text->size() > kLargestText) return text;
  texts_.emplace_front(name, text);
  if (texts_.size() > kMostTexts) texts_.pop_back();
  return text;
}

namespace {

// A part of a recording, by offsets from its start.
struct WindowPart {
  Nanos begin = 0, end = 0;
  bool whole = true;
};

Result<WindowPart> window_part(const RecordingMeta& meta, const std::optional<Nanos>& begin,
                               const std::optional<Nanos>& end) {
  const Nanos span = meta.end - meta.start;
  WindowPart part{.begin = begin.value_or(0), .end = std::min(span, end.value_or(span))};
  part.whole = part.begin == 0 && part.end == span;
  if (part.begin >= part.end && (begin || end))
    return fail(Errc::kInvalidInput,
                fmt::format("begin and end leave no time of the recording, which covers 0 to {}", span));
  return part;
}

// The window as options of `headroom report`.
std::string stretch_of(const WindowPart& part) {
  return part.whole ? "" : fmt::format(" --from {}s --to {}s", decimal(part.begin, 9), decimal(part.end, 9));
}

}  // namespace

Result<Library::Text> Library::view(const std::string& path, const serve::ViewQuery& query) {
  HR_TRY(Kept* const kept, open(path));
  const RecordingMeta& meta = kept->recording().meta;
  HR_TRY(const WindowPart part, window_part(meta, query.begin, query.end));
  const auto make = [&]() -> Result<std::string> {
    Explanation of_part;
    if (!part.whole) {
      ExplainOptions options = explaining(*kept);
      options.window = {part.begin, part.end};
      of_part = explain(kept->recording(), options);
    }
    const Explanation& explanation = part.whole ? kept->whole : of_part;
    const view::View view =
        view::view_of(kept->recording(), explanation,
                      {.bins = query.bins, .series_bins = query.series_bins, .most_processes = kMostProcesses});
    return report::view_json(explanation, view, kept->grows() ? age_of(meta) : std::nullopt, now(*kept));
  };
  return remembered(*kept, fmt::format("view {} {} {} {}", part.begin, part.end, query.bins, query.series_bins), make);
}

Result<Library::Text> Library::why(const std::string& path) {
  HR_TRY(Kept* const kept, open(path));
  return remembered(*kept, "why", [&]() -> Result<std::string> { return report::to_json(kept->whole); });
}

// Predictions that were verified meanwhile count: nothing is remembered.
Result<Library::Text> Library::plan(const std::string& path) {
  HR_TRY(Kept* const kept, open(path));
  PlanRequest request;
  HR_TRY(const compare::Outcomes past, past_predictions());
  request.history = compare::cause_histories(past.list);
  request.loader = loader_of(kept->recording());
  return std::make_shared<const std::string>(report::to_json(headroom::plan(kept->whole, request)));
}

Result<Library::Text> Library::report(const std::string& path, const serve::ViewQuery& query) {
  HR_TRY(Kept* const kept, open(path));
  HR_TRY(const WindowPart part, window_part(kept->recording().meta, query.begin, query.end));
  return remembered(*kept, fmt::format("report {} {}", part.begin, part.end), [&]() -> Result<std::string> {
    ExplainOptions options = explaining(*kept);
    if (!part.whole) options.window = {part.begin, part.end};
    std::string html;
    HR_TRYV(with_document(kept->recording(), options, name_for_commands(path), stretch_of(part),
                          [&](const report::Document& document) -> Result<void> {
                            html = report::to_html(document);
                            return {};
                          }));
    return html;
  });
}

Result<Library::Text> Library::stacks(const std::string& path, const serve::ViewQuery& query) {
  HR_TRY(Kept* const kept, open(path));
  const RecordingMeta& meta = kept->recording().meta;
  HR_TRY(const WindowPart part, window_part(meta, query.begin, query.end));
  return remembered(*kept, fmt::format("stacks {} {}", part.begin, part.end), [&]() -> Result<std::string> {
    const auto profile = profile_of(kept->recording(), {part.begin, part.end}, families_);
    return stacks_json(profile, profile.empty() ? why_no_stacks(meta) : "");
  });
}

Result<Library::Text> Library::comparison(const std::string& a, const std::string& b) {
  const auto comparison = compared({.a = a, .b = b}, {});
  if (!comparison) return tl::unexpected(unreadable(comparison.error()));
  return std::make_shared<const std::string>(report::to_html(report::ComparisonDocument{*comparison}));
}

// Everything in it, so it is read for itself.
Result<Library::Text> Library::trace(const std::string& path) {
  const auto read = open_recording(path);
  if (!read) return tl::unexpected(unreadable(read.error()));
  const OpenedRecording& opened = *read;
  const Explanation explanation = explain(opened.recording, {.path = path, .families = families_});
  auto text = std::make_shared<std::string>();
  HR_TRYV(write_chrome_trace(opened.recording, explanation, [&](std::string_view block) -> Result<void> {
    if (text->size() + block.size() > kLargestTrace)
      return fail(Errc::kUnsupported, "this trace is too large for a browser",
                  "headroom export --format chrome -o trace.json writes it to a file");
    *text += block;
    return {};
  }));
  return Text(std::move(text));
}

// Every form as the recording was last read, for whichever form that was. That the file is as it was then is not
// enough: a log may already be as long as it will be when what it holds is not committed yet.
Result<Library::Text> Library::metrics(const std::string& path, Metrics form) {
  const std::string name = fmt::format("{} {}", static_cast<int>(form), path);
  const bool due = due_for_scrape(path);
  const auto found = scrapes_.find(name);
  const auto read = costs_.find(path);
  if (found != scrapes_.end() && read != costs_.end() && found->second.of == read->second.at &&
      (!due || found->second.trace == trace_of(path)))
    return found->second.text;
  Kept* kept = due ? nullptr : kept_of(path);
  if (kept == nullptr) {
    HR_TRY(kept, open(path));
  }
  const auto snapshot =
      exposition::snapshot_of(kept->recording(), kept->whole, counted_.count(kept->recording(), kept->whole));
  std::string text;
  switch (form) {
    case Metrics::kOpenMetrics:
      text = exposition::to_openmetrics(exposition::families_of(snapshot));
      break;
    case Metrics::kPrometheus:
      text = exposition::to_prometheus(exposition::families_of(snapshot));
      break;
    case Metrics::kDcgm:
      text = exposition::to_prometheus(exposition::dcgm_families_of(snapshot));
      break;
  }
  auto shared = std::make_shared<const std::string>(std::move(text));
  if (scrapes_.size() >= kMostScrapes) scrapes_.clear();
  scrapes_[name] = {kept->trace, kept->read_at, shared};
  return shared;
}

void Library::forget(const std::string& path) {
  std::erase_if(kept_, [&](const auto& one) { return one.first == path; });
}

void Library::forget() {
  kept_.clear();
  texts_.clear();
}

}  // namespace headroom::cli
