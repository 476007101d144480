// SPDX-License-Identifier: Apache-2.0
#include "plan/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/advice_words.h"
#include "model/observations.h"
#include "model/start_part.h"

namespace headroom::planning {

namespace {

// Where most of a start is functions of the job's own, imports are no matter, nor is what else starts load.
std::string start_as_seen(const Explanation& e, const Finding& finding, const StartPart& part) {
  if (!part.imports)
    return fmt::format("keep what {} {} from one start to the next, on a local disk", code_of_start(e.ledger, part),
                       part.code.size() == 1 ? "makes or brings" : "make or bring");
  const std::string place = finding.code ? e.ledger.spot(*finding.code, Account::kStartup) : "";
  return fmt::format("import {}only what is needed{}; of several runs, one process for all imports it once",
                     finding.may_import_late ? "late, and " : "", place.empty() ? "" : ": most of it is " + place);
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
  const StartPart part = part_of_start(e.ledger, finding);
  if (!part.imports && (finding.asleep || finding.mostly_waits)) return shorten_the_wait(e, finding, option);
  if (!part.imports && part.code.empty()) return;
  option.apply = start_as_seen(e, finding, part);
  option.title = "Keep what every start makes or loads";
  if (!part.imports) return;
  option.title = "Import less at the start, or once for several runs";
  option.why_safe = "the same modules";
  option.undo = "the imports as they were";
}

// Whether to have fewer threads can help: they are seen to fill the cores, and are not known to be off already.
bool threads_fill_cores(const Explanation& e, const Finding* finding) {
  return finding && !finding->no_threads_to_save && e.host && !one_thread_each(e.meta);
}

// How long threads waited for cores is counted of the main one only, and what fewer of them would take longer for is
// not in this recording: the same run with both tells, and nothing is promised for it.
void may_have_fewer_threads(const Explanation& e, Option& option) {
  const int many = std::max(2, static_cast<int>(e.host->usable_cores));
  option.apply += "; to be tried: no more threads than cores (OMP_NUM_THREADS=1 MKL_NUM_THREADS=1)";
  option.safety = Safety::kModerate;
  option.why_safe = "with fewer threads it may be slower: nothing here shows what each of them is worth";
  option.verify =
      fmt::format("headroom probe --vary threads=1,{} -- env OMP_NUM_THREADS={{threads}} CMD: which is faster", many);
}

void fit_cores(const Explanation& e, const Finding* finding, const Numbers& known, Option& option) {
  option.apply = "other load elsewhere, or more cores" + filled("{cores}", known);
  if (e.host && static_cast<double>(e.host->helpers) > e.host->usable_cores)
    option.apply += "; of the job itself no more workers than cores";
  if (threads_fill_cores(e, finding)) may_have_fewer_threads(e, option);
  if (finding && !finding->interpreter_at.empty())
    option.apply += fmt::format("; {}{}", finding->interpreter_at, kHasTheInterpreter);
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
  if (fix.id == "fewer_threads") fit_cores(e, finding, known, option);
  if (fix.id == "cheaper_samples" && e.host && e.host->helpers == 0)
    option.verify = "time per step; a hash of the same samples";                               // threads load
  if (fix.id == "end_after_work" && finding && finding->code) option.apply = finding->advice;  // it is no upload
}

void validates_on_the_cpu(const RecordingMeta& meta, Option& option) {
  option.title = "Run the validation on the GPU";
  option.apply = words_for(meta, {"move its model, samples and metrics there (.to(device)): hardly a kernel ran in it",
                                  "move what it computes there: hardly a kernel ran in it"});
  option.undo = "the validation on the CPU";
}

}  // namespace headroom::planning
