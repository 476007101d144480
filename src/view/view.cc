// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <algorithm>
#include <map>

#include "view/parts.h"

namespace headroom::view {

std::vector<SourceId> gpu_sources(const Recording& recording, const Ledger& ledger) {
  std::vector<SourceId> sources;
  for (const Device& device : ledger.devices)
    sources.push_back(recording.find(SourceKind::kGpu, device.uuid).value_or(kNoSource));
  return sources;
}

namespace {

void longest_first(std::vector<Marks>& marks) {
  std::stable_sort(marks.begin(), marks.end(), [](const Marks& a, const Marks& b) { return a.ns > b.ns; });
}

std::vector<Marks> phases_of(const std::vector<Slice>& slices, Nanos gap) {
  std::map<std::int32_t, Spans> spans;
  for (const Slice& slice : slices)
    if (slice.phase >= 0) spans.try_emplace(slice.phase, gap).first->second.add(slice.begin, slice.end);
  std::vector<Marks> marks;
  for (auto& [phase, of_phase] : spans)
    marks.push_back({static_cast<std::size_t>(phase), of_phase.ns(), std::move(of_phase).take()});
  longest_first(marks);
  return marks;
}

std::vector<Marks> findings_of(const std::vector<Finding>& findings, std::size_t device, Nanos gap) {
  std::vector<Marks> marks;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Spans spans(gap);
    for (const ClaimedPiece& piece : findings[i].claims)
      if (piece.device == device) spans.add(piece.begin, piece.end);
    if (spans.ns() > 0) marks.push_back({i, spans.ns(), std::move(spans).take()});
  }
  longest_first(marks);
  return marks;
}

std::vector<Share> all_of(const Ledger& ledger) {
  std::vector<Share> shares;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = ledger.total(account.id); ns > 0) shares.push_back({account.id, ns});
  return shares;
}

}  // namespace

View view_of(const Recording& recording, const Explanation& explanation, const Options& options) {
  const Ledger& ledger = explanation.ledger;
  View view;
  view.begin = ledger.begin;
  view.end = ledger.end;
  view.goes_on = goes_on(recording.meta);
  view.ledger = all_of(ledger);
  const std::vector<SourceId> gpus = gpu_sources(recording, ledger);
  view.runs = runs_of(recording, ledger, gpus);
  const Nanos bin = ledger.span() / static_cast<Nanos>(std::max<std::size_t>(1, options.bins));
  for (std::size_t device = 0; device < ledger.devices.size(); ++device) {
    const std::vector<Slice>& slices = explanation.slices[device];
    Gpu gpu;
    gpu.ledger = sum_of(slices);
    gpu.strip = strip_of(slices, ledger.begin, ledger.end, options.bins);
    gpu.series = series_of(recording, explanation, device, gpus[device], options.series_bins);
    if (gpus[device] != kNoSource) add_last_readings(track_of(recording, gpus[device]), view, gpu);
    gpu.phases = phases_of(slices, bin);
    gpu.findings = findings_of(explanation.findings, device, bin);
    view.gpus.push_back(std::move(gpu));
  }
  add_bars(view, bin, options.most_bars);
  add_processes(recording, explanation, gpus, options.most_processes, view);
  return view;
}

}  // namespace headroom::view
