// SPDX-License-Identifier: Apache-2.0
#include "batch/finish.h"

#include "base/filesystem.h"
#include "base/time.h"
#include "batch/ledger_figures.h"

namespace headroom::batch {

bool write_end(Prepared& batch, const BatchEnd& end, const SessionResult& recorded, const Say& say) {
  Journal& journal = *batch.journal;
  journal.note_recording(recorded.path);
  journal.note_run_end(end.reason, realtime_now());
  const auto written = journal.commit();
  if (!written) {
    say(written.error().what, written.error().hint);
    if (end.unwritten > 0)
      say(fmt::format("{} results could not be written: those tasks run again at the next resume", end.unwritten), "");
    return end.unwritten == 0;
  }
  const Journal::Wholeness whole = journal.check_whole();
  if (!whole.words.empty()) say(whole.words, "");
  return whole.kept;
}

void complete_records(Prepared& batch, const BatchEnd& end, const SessionResult& recorded, const FromRecording& from,
                      const Say& say) {
  Journal& journal = *batch.journal;
  if ((from.explanation || !from.metrics.empty()) && !journal.pending()) {
    if (from.explanation)
      for (const AttemptGpuTime& one : gpu_times(*from.explanation, end.on_gpus))
        journal.note_gpu_time(one.attempt, one.gpu_time);
    for (const AttemptMetric& metric : from.metrics) journal.note_metric(metric);
    if (const auto written = journal.commit(); !written) say(written.error().what, written.error().hint);
  }
  journal.sync();
  if (!recorded.path.empty() && !recorded.error)
    if (const auto copied = copy_journal(batch.place.folder_now(), recorded.path); !copied)
      say(fmt::format("{}: the recording is without it", copied.error().what), "");
  if (batch.history_path.empty()) return;
  auto saved = make_private_folder(headroom::directory_of(batch.history_path));
  if (saved) saved = batch.history.save(batch.history_path);
  if (!saved) say(fmt::format("what was learned is not kept: {}", saved.error().what), "");
}

void write_that_nothing_was_left(Prepared& batch, const Say& say) {
  batch.journal->note_run_end("finished", realtime_now());
  if (const auto written = batch.journal->commit(); !written) say(written.error().what, written.error().hint);
}

}  // namespace headroom::batch
