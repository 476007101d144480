// SPDX-License-Identifier: Apache-2.0
#include "plan/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/advice_words.h"
#include "model/observations.h"

namespace headroom::planning {

namespace {

bool is_import(std::string_view place) { return place == "imports" || place.starts_with("import "); }

// Where most of a start is one function of the job's own, imports are no matter, nor is what else starts load.
std::string start_as_seen(const Explanation& e, const Finding& finding, const std::string& otherwise) {
  const std::string place = finding.code ? e.ledger.spot(*finding.code, Account::kStartup) : "";
  if (part_of_start(e, finding).imports) {
    return fmt::format("import {}only what is needed{}; of several runs, one process for all imports it once",
                       finding.may_import_late ? "late, and " : "", place.empty() ? "" : ": most of it is " + place);
  }
  if (place.empty()) return otherwise;
  return fmt::format("keep what {} makes or brings from one start to the next, on a local disk", place);
}

// Of a start in which its process slept or waited: it makes nothing itself that could be kept.
void shorten_the_wait(const Explanation& e, const Finding& finding, Option& option) {
  const std::string place =
      finding.code ? "in " + e.ledger.spot(*finding.code, Account::kStartup) : "before the first kernel";
  option.title = "Shorten the wait " + place;
  option.apply =
      "begin what it waits for there earlier, or do without it; what another program makes for it or a disk brings, "
      "keep from one start to the next";
  option.safety = Safety::kModerate;
  option.why_safe = "what it waits for must be there when it goes on";
  option.undo = "the wait as it was";
}

void fit_start(const Explanation& e, const Finding& finding, Option& option) {
  const bool imports = part_of_start(e, finding).imports;
  if (!imports && (finding.asleep || finding.mostly_waits)) return shorten_the_wait(e, finding, option);
  option.apply = start_as_seen(e, finding, option.apply);
  if (imports)
    option.title = "Import less at the start, or once for several runs", option.why_safe = "the same modules",
    option.undo = "the imports as they were";
}

bool may_have_threads(const Explanation& e, const Finding* finding) {
  return !one_thread_each(e.meta) && !(finding && finding->threads_hardly_ran);
}

// How long threads waited for cores is counted of the main one only, and what fewer of them would take longer for is
// not in this recording: the same run with both tells.
std::string fewer_threads_check(const Explanation& e) {
  const int many = e.host ? std::max(2, static_cast<int>(e.host->usable_cores)) : 2;
  return fmt::format("headroom probe --vary threads=1,{} -- env OMP_NUM_THREADS={{threads}} CMD: which is faster",
                     many);
}

// Of the job itself only what it may have: threads that were seen to run, or are not known to be off already.
std::string fewer_threads(const Explanation& e, const Finding* finding, const Numbers& known) {
  std::string text = "other load elsewhere, or more cores" + filled("{cores}", known);
  const bool threads = may_have_threads(e, finding);
  const bool workers = e.host && static_cast<double>(e.host->helpers) > e.host->usable_cores;
  if (threads || workers)
    text += fmt::format("; of the job itself no more {}{}{} than cores", threads ? "threads" : "",
                        threads && workers ? " and " : "", workers ? "workers" : "");
  if (threads) text += " (OMP_NUM_THREADS=1 MKL_NUM_THREADS=1)";
  if (finding && !finding->interpreter_at.empty())
    text += fmt::format("; {}{}", finding->interpreter_at, kHasTheInterpreter);
  return text;
}

void take(const Remedy& remedy, const Finding& finding, Option& option) {
  option.apply = finding.advice;
  if (!remedy.title.empty()) option.title = remedy.title;
  if (!remedy.why_safe.empty()) option.why_safe = remedy.why_safe;
  if (!remedy.verify.empty()) option.verify = remedy.verify;
  if (!remedy.undo.empty()) option.undo = remedy.undo;
  option.safety = remedy.safety.value_or(option.safety);
}

}  // namespace

void fit_to_the_job(const Explanation& e, const Fix& fix, const Finding* finding, const Numbers& known,
                    Option& option) {
  if (fix.id == "end_the_hang" && job_is_over(e.meta)) option.apply = "in the next run, " + option.apply;
  option.verify = words_for(e.meta, fix.verify);
  option.undo = words_for(e.meta, fix.undo);
  if (finding && finding->remedy && finding->remedy->fix == fix.id) return take(*finding->remedy, *finding, option);
  if (fix.id == "faster_startup" && finding) fit_start(e, *finding, option);
  const bool by_a_thread = finding && (finding->cause == Cause::kGilContention ||
                                       (!finding->cause && finding->candidates.front() == Cause::kGilContention));
  if (fix.id == "thread_to_process" && by_a_thread && !finding->advice.empty())
    option.apply = finding->advice;  // that thread is named
  if (fix.id == "local_data" && finding && finding->from_afar) {
    option.title = "Keep the data nearby, or ask for it ahead";
    option.apply = "keep a copy of what it asks for on a local disk; ask for several at a time, ahead of the step";
    option.verify = "time per step, once the copy is there";
  }
  if (fix.id == "fewer_threads") {
    option.apply = fewer_threads(e, finding, known);
    if (may_have_threads(e, finding)) option.verify = fewer_threads_check(e);
  }
  if (fix.id == "cheaper_samples" && e.host && e.host->helpers == 0)
    option.verify = "time per step; a hash of the same samples";                               // threads load
  if (fix.id == "end_after_work" && finding && finding->code) option.apply = finding->advice;  // it is no upload
}

StartPart part_of_start(const Explanation& e, const Finding& finding) {
  const auto imports_at = [&](std::int32_t where) {
    return where >= 0 && is_import(e.ledger.places[static_cast<std::size_t>(where)]);
  };
  Nanos imports = 0, code = 0;
  for (const ClaimedPiece& piece : finding.claims) {
    if (imports_at(piece.where)) imports += piece.end - piece.begin;
    if (piece.where == finding.code) code += piece.end - piece.begin;
  }
  const Nanos all = finding.cost();
  const bool most_are_imports = 2 * imports > all || (finding.code && imports_at(*finding.code));
  if (!most_are_imports && !finding.code) return {};
  return {
      .share = static_cast<double>(most_are_imports ? imports : code) / static_cast<double>(std::max<Nanos>(1, all)),
      .imports = most_are_imports};
}

void validates_on_the_cpu(const RecordingMeta& meta, Option& option) {
  option.title = "Run the validation on the GPU";
  option.apply = words_for(meta, {"move its model, samples and metrics there (.to(device)): hardly a kernel ran in it",
                                  "move what it computes there: hardly a kernel ran in it"});
  option.undo = "the validation on the CPU";
}

}  // namespace headroom::planning
