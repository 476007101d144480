// SPDX-License-Identifier: Apache-2.0
#include "plan/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/advice_words.h"
#include "model/observations.h"

namespace headroom::planning {

namespace {

// Copies from one GPU to another, as in a model that is spread over them, rather than an exchange of all.
bool between_gpus(const Finding& finding) {
  return !finding.claims.empty() &&
         std::all_of(finding.claims.begin(), finding.claims.end(),
                     [](const ClaimedPiece& piece) { return piece.account == Account::kTransfer; });
}

// Where most of a start is one function of the job's own, imports are no matter, nor is what else starts load.
std::string start_as_seen(const Explanation& e, const Finding* finding, const std::string& otherwise) {
  if (!finding || !finding->code || finding->advice.find(kCostsLater) != std::string::npos) return otherwise;
  const std::string place = e.ledger.spot(*finding->code, Account::kStartup);
  if (place.starts_with("import ")) {
    const bool late = finding->advice.find("import late") == std::string::npos;  // after kernels the GPU waits for it
    return fmt::format(
        "import {}only what is needed: most of it is {}; of several runs, one process for all imports it once",
        late ? "" : "late, and ", place);
  }
  return fmt::format("keep what {} makes or brings from one start to the next, on a local disk", place);
}

// Of the job itself only what it may have: threads that were seen to run, or are not known to be off already.
std::string fewer_threads(const Explanation& e, const Finding* finding, const Numbers& known) {
  std::string text = "other load elsewhere, or more cores" + filled("{cores}", known);
  const bool threads =
      !one_thread_each(e.meta) && !(finding && finding->advice.find(kThreadsHardlyRan) != std::string::npos);
  const bool workers = e.host && static_cast<double>(e.host->helpers) > e.host->usable_cores;
  if (threads || workers)
    text += fmt::format("; of the job itself no more {}{}{} than cores", threads ? "threads" : "",
                        threads && workers ? " and " : "", workers ? "workers" : "");
  if (threads) text += " (OMP_NUM_THREADS=1 MKL_NUM_THREADS=1)";
  if (const auto first = finding ? finding->advice.find(kHasTheInterpreter) : std::string::npos;
      first != std::string::npos)
    text += finding->advice.substr(finding->advice.rfind("; ", first),
                                   first + kHasTheInterpreter.size() - finding->advice.rfind("; ", first));
  return text;
}

}  // namespace

void fit_to_the_job(const Explanation& e, const Fix& fix, const Finding* finding, const Numbers& known,
                    Option& option) {
  if (fix.id == "end_the_hang" && job_is_over(e.meta)) option.apply = "in the next run, " + option.apply;
  option.verify = fix.verify;
  option.undo = fix.undo;
  if (fix.id == "overlap_communication" && finding && finding->cause && between_gpus(*finding)) {
    option.title = "Copy between GPUs while kernels run, or less";  // by a trace: no gradients are exchanged
    option.why_safe = "what is sent later must not be overwritten before";
    option.apply = finding->advice;
    option.verify = "time per step; copies in a trace";
  }
  if (fix.id == "restore_clocks" && finding && finding->cause && !finding->advice.empty()) {
    option.apply = finding->advice;  // by the reasons that were seen
    if (option.apply.find("-pl") == std::string::npos) option.undo = "as it was";
  }
  if (fix.id == "persistent_workers" && finding && finding->ended_badly) {
    option.title = "Let the loader's workers live on";
    option.apply = finding->advice;
    option.undo = "as it was";
  }
  if (fix.id == "faster_startup" && finding && finding->advice.find(kCostsLater) != std::string::npos) {
    option.title = "Change the code that each start runs, too";
    option.apply = finding->advice;
    option.why_safe = "its result must stay the same";
    option.safety = Safety::kModerate;
    option.undo = "the code as it was";
  }
  if (fix.id == "faster_startup") {
    option.apply = start_as_seen(e, finding, option.apply);
    if (option.apply.starts_with("import ") && finding->code)
      option.title = "Import less at the start, or once for several runs", option.why_safe = "the same modules",
      option.undo = "the imports as they were";
  }
  const bool by_a_thread = finding && (finding->cause == Cause::kGilContention ||
                                       (!finding->cause && finding->candidates.front() == Cause::kGilContention));
  if (fix.id == "thread_to_process" && by_a_thread && !finding->advice.empty()) {
    option.apply = finding->advice;  // that thread is named
    if (option.apply.find(" lock") != std::string::npos)
      option.title = "Hold the lock of the other thread for less time";
  }
  if (fix.id == "fewer_threads") option.apply = fewer_threads(e, finding, known);
  if (fix.id == "reserve_memory" && !e.batch && finding && finding->cause) {  // there is no task file
    option.title = "Start with what fits, not after a failure";
    option.apply = finding->advice;
    option.why_safe = "a smaller batch changes what a step is";
    option.safety = Safety::kModerate;
    option.undo = "as it was";
  }
  if (fix.id == "let_the_gpu_go" && finding && finding->advice == kWhileNobodyAsks) {
    option.apply = finding->advice;
    option.why_safe = "who asks first waits until it has started";
    option.undo = "as it was";
  }
  if (fix.id == "end_after_work" && finding && (finding->code || finding->advice == kEndsSooner))
    option.apply = finding->advice;  // it is no upload
}

}  // namespace headroom::planning
