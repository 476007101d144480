// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_sides.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/answers.h"
#include "base/strings.h"
#include "batch/folder.h"
#include "cli/families.h"
#include "cli/open_recording.h"
#include "compare/requirements.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

// A recording is of one run of the batch: where a second one started tasks, too, neither speaks for all of it.
std::string the_recording_of(const batch::Contents& contents) {
  std::string recording;
  std::size_t runs = 0;
  for (const batch::Run& run : contents.runs) {
    const auto of_it = [&](const Attempt& attempt) {
      return attempt.start >= run.start && (!run.end || attempt.start <= *run.end);
    };
    if (std::none_of(contents.attempts.begin(), contents.attempts.end(), of_it)) continue;
    recording = run.recording;
    ++runs;
  }
  return runs == 1 ? recording : "";
}

// The most of all; not known where one run does not tell.
template <class T>
void keep_most(const std::optional<T>& more, std::optional<T>& most) {
  most = most && more ? std::optional(std::max(*most, *more)) : std::nullopt;
}

// For whoever reads it later: "last" is another one by then.
std::string label_of(const std::string& what) {
  if (what != "last" && !what.starts_with("last~")) return what;
  const auto path = path_of_recording(what);
  return path ? base_name(*path) : what;
}

void add_figures_of_tasks(compare::Side& side) {
  const auto figures = compare::figures_of_tasks(side.samples);
  side.figures.insert(side.figures.end(), figures.begin(), figures.end());
}

Result<compare::Side> side_of_batch(const std::string& what, const std::vector<std::string>& changed) {
  HR_TRY(const std::string folder, batch::find_folder(what));
  HR_TRY(const batch::Contents contents, batch::read_journal(folder));
  compare::Side side = side_of_journal(contents, changed);
  const std::string recording = the_recording_of(contents);
  if (!recording.empty())
    if (const auto opened = open_recording(recording, {}, {.leave_out = metrics_not_explained()}))
      take_batch_recording(opened->recording, side);
  add_figures_of_tasks(side);
  return side;
}

Result<compare::Side> side_of_recording(const std::string& what, const std::vector<std::string>& changed,
                                        const ImportOptions& import) {
  HR_TRY(const OpenedRecording opened, open_recording(what, import, {.leave_out = metrics_not_explained()}));
  if (opened.recording.meta.origin == "batch") {
    if (const auto contents = batch::read_copied_journal(opened.path)) {
      compare::Side side = side_of_journal(*contents, changed);
      take_batch_recording(opened.recording, side);
      add_figures_of_tasks(side);
      return side;
    }
  }
  HR_TRY(const auto families, users_families());
  return side_of_job(opened.recording, {.path = opened.path, .families = families});
}

bool names_a_batch(const std::string& what) {
  std::error_code ignored;
  if (fs::is_directory(what, ignored)) return true;
  return what.ends_with(".toml") || base_name(what) == "journal.sqlite";
}

Result<compare::Side> one_side(const std::string& what, const std::vector<std::string>& changed,
                               const ImportOptions& import) {
  HR_TRYV(answers(what));
  if (base_name(what) == "journal.sqlite") return side_of_batch(fs::path(what).parent_path().string(), changed);
  return names_a_batch(what) ? side_of_batch(what, changed) : side_of_recording(what, changed, import);
}

void join_hardware(const compare::Hardware& more, compare::Hardware& all) {
  if (all.gpus != more.gpus) all.gpus.insert(all.gpus.end(), more.gpus.begin(), more.gpus.end());
  if (all.uuids != more.uuids) all.uuids.insert(all.uuids.end(), more.uuids.begin(), more.uuids.end());
  if (all.driver != more.driver) all.driver += ", " + more.driver;
}

}  // namespace

void join_sides(compare::Side more, compare::Side& all) {
  all.samples.insert(all.samples.end(), more.samples.begin(), more.samples.end());
  all.steps.insert(all.steps.end(), more.steps.begin(), more.steps.end());
  all.figures.insert(all.figures.end(), more.figures.begin(), more.figures.end());
  join_hardware(more.hardware, all.hardware);
  if (more.others) all.others = std::max(all.others.value_or(0), *more.others);
  keep_most(more.processes, all.processes);
  keep_most(more.others_bytes, all.others_bytes);
  if (all.throttled.empty()) all.throttled = more.throttled;
  if (all.bytes_read && more.bytes_read)
    *all.bytes_read += *more.bytes_read;
  else
    all.bytes_read.reset();
  for (const auto& [name, value] : more.accounts) compare::add(all.accounts, name, value);
  for (const auto& [name, value] : more.phases) compare::add(all.phases, name, value);
}

Result<compare::Side> side_of(const std::string& what, const std::vector<std::string>& changed,
                              const ImportOptions& import) {
  HR_TRYV(answers(what));
  std::vector<std::string> parts{what};
  if (what.find(',') != std::string::npos && ::access(what.c_str(), F_OK) != 0) {
    parts.clear();
    for (const std::string_view part : split(what, ',')) parts.emplace_back(trim(part));
  }
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (std::find(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i), parts[i]) !=
        parts.begin() + static_cast<std::ptrdiff_t>(i))
      return fail(Errc::kInvalidInput, fmt::format("{} is named twice in {}", parts[i], what),
                  "one run is no repeat of itself: name runs of their own");
  HR_TRY(compare::Side side, one_side(parts.front(), changed, import));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    HR_TRY(compare::Side more, one_side(parts[i], changed, import));
    join_sides(std::move(more), side);
  }
  for (std::string& part : parts) part = label_of(part);
  side.label = join(parts, ",");
  return side;
}

}  // namespace headroom::cli
