// SPDX-License-Identifier: Apache-2.0
#include "diagnose/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/human.h"

namespace headroom::diagnose {

std::string owner_sentence(const HostSummary& s) {
  std::string text = fmt::format(
      "the main thread of the process on the GPU used {} of a core and waited {} of the time for a free one",
      human_percent(s.owner_cpu), human_percent(s.owner_delay));
  if (s.owner_io) text += fmt::format("; it was blocked on storage for {}", human_percent(*s.owner_io));
  return text;
}

std::string helper_sentence(const HostSummary& s) {
  if (s.helpers == 0) return "it has no worker processes";
  return fmt::format("its {} worker process{} used {:.1f} cores together, waiting for a core {} of the time", s.helpers,
                     s.helpers == 1 ? "" : "es", s.helper_cpu, human_percent(s.helper_delay));
}

std::string storage_sentence(const HostSummary& s) {
  return fmt::format("read from storage: {}/s, written: {}/s", human_bytes(static_cast<std::int64_t>(s.read_rate)),
                     human_bytes(static_cast<std::int64_t>(s.write_rate)));
}

std::vector<std::string> cores_sentence(const HostSummary& s) {
  if (!s.busy_cores) return {};
  const double job = s.owner_cpu * static_cast<double>(s.owners) + s.helper_cpu;
  return {fmt::format("of {:.3g} usable cores the machine used {:.1f}, these processes {:.1f}", s.usable_cores,
                      *s.busy_cores, std::min(job, *s.busy_cores))};
}

std::vector<std::string> recurrences(const Analysis& a, std::optional<std::size_t> device) {
  std::vector<std::string> sentences;
  for (const Phase& phase : a.phases)
    if ((!device || phase.device == *device) && phase.name == "idle" && phase.count > 1)
      sentences.push_back(fmt::format("{} reads 0 % for {} on average, {} times{}; a single 0 % reading is no alarm",
                                      a.device_name(phase.device), human_duration(phase.total / phase.count),
                                      phase.count, phase.period ? ", every " + human_duration(*phase.period) : ""));
  return sentences;
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace headroom::diagnose
