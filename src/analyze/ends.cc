// SPDX-License-Identifier: Apache-2.0
#include "analyze/ends.h"

#include <algorithm>

namespace headroom {

namespace {

// By process: the last look at it or at the stacks of one of its threads; 0 where there was none.
std::vector<Nanos> last_looks(const Recording& recording) {
  std::vector<Nanos> last(recording.sources.size());
  const auto note = [&](SourceId process, Nanos at) {
    Nanos& known = last[static_cast<std::size_t>(process)];
    known = std::max(known, at);
  };
  for (const SourceId id : recording.all(SourceKind::kProcess))
    if (const auto& rows = track_of(recording, id).at; !rows.empty()) note(id, rows.back());
  for (const SourceId id : recording.all(SourceKind::kPythonThread)) {
    const SourceId process = recording.sources[static_cast<std::size_t>(id)].parent;
    const auto& stacks = track_of(recording, id).lists;
    if (process != kNoSource && !stacks.empty()) note(process, stacks.back().at);
  }
  return last;
}

Nanos seen_until(const Recording& recording, const std::vector<Nanos>& lists, const std::vector<Nanos>& looks,
                 const ContextUse& use) {
  const auto missed = std::upper_bound(lists.begin(), lists.end(), use.last_seen);
  bool gone = missed != lists.end();
  Nanos seen = use.last_seen;
  if (use.process) {
    const Source& source = recording.sources[static_cast<std::size_t>(*use.process)];
    const std::optional<Nanos> end = process_of(source).end;
    const bool until_the_end = missed == lists.end() || *missed >= recording.meta.end;
    if (end && source.parent == kNoSource && *end >= recording.meta.end && until_the_end) return use.end;
    // A process that goes on while the list no longer has it let the device go.
    const Nanos look = looks[static_cast<std::size_t>(*use.process)];
    if (missed == lists.end() || look < *missed) seen = std::max(seen, look);
    gone = gone || end;
  }
  return gone ? std::min(seen, use.end) : use.end;
}

}  // namespace

void tell_ends(const Recording& recording, const std::map<SourceId, std::vector<Nanos>>& lists, JobView& job) {
  if (job.batch.present) {
    for (ContextUse& use : job.uses) use.seen_until = use.end;
    return;
  }
  const std::vector<Nanos> looks = last_looks(recording);
  for (ContextUse& use : job.uses) use.seen_until = seen_until(recording, lists.at(use.device), looks, use);
}

}  // namespace headroom
