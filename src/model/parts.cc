// SPDX-License-Identifier: Apache-2.0
#include "model/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/fnv.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "model/bounds.h"
#include "model/ledger.h"
#include "model/part_facts.h"

namespace headroom {

namespace {

constexpr std::string_view kOrigin = "merge", kStopReason = "merged";

// The parts that have not this tier.
struct PartsWithout {
  std::size_t parts = 0, so = 0;     // so: those that give the first reason
  std::size_t first = 0;             // the part whose reason that is
  const std::string* why = nullptr;  // null: none gives any
};
PartsWithout parts_without(char tier, std::span<const RecordingMeta> metas) {
  PartsWithout found;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    if (metas[i].tiers.find(tier) != std::string::npos) continue;
    ++found.parts;
    for (const MissingTier& missing : metas[i].missing_tiers) {
      if (missing.tier != tier) continue;
      if (found.why == nullptr) found.why = &missing.why, found.first = i;
      if (missing.why == *found.why) ++found.so;
    }
  }
  return found;
}

// Tiers that one part has and another has not are there, and missing: of the other it is said.
void add_tiers(std::span<const RecordingMeta> metas, RecordingMeta& all) {
  const std::vector<PartName> names = part_names(metas);
  for (const char letter : Tiers::kLetters) {
    const PartsWithout without = parts_without(letter, metas);
    if (without.parts < metas.size()) all.tiers += letter;
    if (without.why == nullptr) continue;
    const std::string more = without.so > 1 ? fmt::format(" and {} more", without.so - 1) : "";
    const std::string whose =
        without.so >= metas.size() ? "" : fmt::format("of {}{}: ", names[without.first].part, more);
    all.missing_tiers.push_back({letter, whose + *without.why});
  }
}

template <class Field>
bool same_in_all(std::span<const RecordingMeta> metas, const Field& field) {
  return std::all_of(metas.begin(), metas.end(), [&](const auto& meta) { return field(meta) == field(metas.front()); });
}

}  // namespace

std::vector<PartName> part_names(std::span<const RecordingMeta> metas) {
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> machines;  // by host: (boot, its name)
  std::map<std::string, std::size_t> parts;                                          // by machine: how many
  std::vector<PartName> names;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    const std::string host = metas[i].host.empty() ? fmt::format("recording {}", i + 1) : metas[i].host;
    auto& known = machines[host];
    auto found =
        std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == metas[i].boot_id; });
    if (found == known.end())
      found = known.insert(found,
                           {metas[i].boot_id, known.empty() ? host : fmt::format("{} ({})", host, known.size() + 1)});
    names.push_back({found->second, ""});
    ++parts[names.back().machine];
  }
  std::map<std::string, std::size_t> numbers;
  for (PartName& name : names)
    name.part = parts[name.machine] == 1 ? name.machine : fmt::format("{}:{}", name.machine, ++numbers[name.machine]);
  return names;
}

bool of_one_machine(std::span<const PartName> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const PartName& name) { return name.machine == names[0].machine; });
}

RecordingMeta meta_of_all(std::span<const RecordingMeta> metas) {
  RecordingMeta all;
  all.origin = kOrigin;
  all.stop_reason = kStopReason;
  if (metas.empty()) return all;
  std::string ids;
  all.start = all.end = metas.front().start_realtime;
  for (const RecordingMeta& meta : metas) {
    ids += meta.id + "\n";
    all.start = std::min(all.start, meta.start_realtime);
    all.end = std::max(all.end, meta.end + to_unix_time(meta));
    all.interval = std::max(all.interval, meta.interval);
    if (meta.exit_code.value_or(0) != 0 && all.exit_code.value_or(0) == 0) all.exit_code = meta.exit_code;
  }
  all.id = fmt::format("{:016x}", fnv1a(ids));
  all.start_realtime = all.start;
  const RecordingMeta& first = metas.front();
  if (!all.exit_code && same_in_all(metas, [](const auto& meta) { return meta.exit_code; }))
    all.exit_code = first.exit_code;
  if (same_in_all(metas, [](const auto& meta) { return meta.host; })) all.host = first.host;
  if (same_in_all(metas, [](const auto& meta) { return meta.boot_id; })) all.boot_id = first.boot_id;
  if (same_in_all(metas, [](const auto& meta) { return meta.writer; })) all.writer = first.writer;
  if (same_in_all(metas, [](const auto& meta) { return meta.cwd; })) all.cwd = first.cwd;
  if (same_in_all(metas, [](const auto& meta) { return meta.command; })) all.command = first.command;
  for (const auto& [name, value] : first.extra)
    if (same_in_all(metas, [&, key = name](const auto& meta) {
          const auto found = meta.extra.find(key);
          return found == meta.extra.end() ? std::string() : found->second;
        }))
      all.extra[name] = value;
  add_tiers(metas, all);
  return all;
}

std::string gpu_identity(const RecordingMeta& meta, std::string_view uuid) {
  if (!meta.boot_id.empty()) return fmt::format("{}/{}", meta.boot_id, uuid);
  if (!meta.host.empty()) return fmt::format("{}/{}", meta.host, uuid);
  return uuid.starts_with("GPU-") ? std::string(uuid) : "";
}

std::vector<PartGpu> gpus_of_part(const Recording& part) {
  std::vector<PartGpu> gpus;
  for (const SourceId id : part.all(SourceKind::kGpu)) {
    const Device device = device_of(part.sources[static_cast<std::size_t>(id)]);
    const Track& track = track_of(part, id);
    if (track.at.empty() || device.given == false) continue;
    const Nanos by = to_unix_time(part.meta);
    gpus.push_back({gpu_identity(part.meta, device.uuid), device.index, track.at.front() + by, track.at.back() + by});
  }
  return gpus;
}

namespace {

Result<void> has_each_once(std::span<const PartToJoin> parts) {
  std::map<std::string, std::string> ids;
  for (const PartToJoin& part : parts) {
    if (part.meta.origin == kOrigin)
      return fail(Errc::kInvalidInput, fmt::format("{} was made of several recordings already", part.name),
                  "give the recordings that it was made of");
    if (part.meta.start_realtime <= 0 || part.meta.start_realtime > kLatest)
      return fail(Errc::kInvalidInput,
                  fmt::format("{} has no date: when it was beside the others is not known", part.name),
                  "explain it alone, or import it with --start-date");
    const auto [known, is_new] = ids.emplace(part.meta.id, part.name);
    if (!part.meta.id.empty() && !is_new)
      return fail(
          Errc::kInvalidInput,
          fmt::format("{} and {} are one recording, by its id: its time would count twice", known->second, part.name),
          "leave one of them out");
  }
  return {};
}

}  // namespace

Result<void> can_be_joined(std::span<const PartToJoin> parts) {
  HR_TRYV(has_each_once(parts));
  struct Seen {
    PartGpu gpu;
    const PartToJoin* part = nullptr;
  };
  std::vector<Seen> all;
  for (const PartToJoin& part : parts)
    for (const PartGpu& gpu : part.gpus)
      if (!gpu.identity.empty()) all.push_back({gpu, &part});
  std::sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
    return std::pair(a.gpu.identity, a.gpu.begin) < std::pair(b.gpu.identity, b.gpu.begin);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Seen &one = all[i - 1], &next = all[i];
    if (one.gpu.identity != next.gpu.identity || next.gpu.begin >= one.gpu.end) continue;
    return fail(Errc::kInvalidInput,
                fmt::format("{} and {} both have GPU {}{} from {} to {}: its time would count twice", one.part->name,
                            next.part->name, next.gpu.index,
                            next.part->meta.host.empty() ? "" : " of " + visible(next.part->meta.host),
                            clock_time(next.gpu.begin), clock_time(std::min(one.gpu.end, next.gpu.end))),
                "leave one of them out; of run and record beside it, run knows the job");
  }
  return {};
}

std::string gpus_on_machines(std::span<const Device> devices) {
  constexpr std::size_t kMostHosts = 2, kMostNamed = 8;
  std::map<std::string, std::vector<std::string>> hosts;
  for (const Device& device : devices) hosts[device.host].push_back(fmt::format("{}", device.index));
  if (hosts.size() > kMostHosts || devices.size() > kMostNamed)
    return fmt::format("{} GPUs on {}", devices.size(),
                       hosts.size() == 1 ? hosts.begin()->first : count_of(hosts.size(), "machine"));
  std::vector<std::string> words;
  for (const auto& [host, indices] : hosts)
    words.push_back(fmt::format("{} {} {}", host, indices.size() == 1 ? "GPU" : "GPUs", join(indices, ", ")));
  return join(words, " and ");
}

bool has_parts(const Recording& recording) {
  return !recording.sources.empty() && recording.sources.front().kind == SourceKind::kPart;
}

std::vector<RecordingMeta> metas_of_parts(const Recording& recording) {
  std::vector<RecordingMeta> metas;
  for (const SourceId id : recording.all(SourceKind::kPart))
    metas.push_back(meta_of_part(recording.sources[static_cast<std::size_t>(id)]));
  return metas;
}

std::vector<std::size_t> parts_of_sources(const Recording& recording) {
  std::vector<std::size_t> parts;
  std::size_t now = 0, seen = 0;
  for (const Source& source : recording.sources) {
    if (source.kind == SourceKind::kPart) now = seen++;
    parts.push_back(now);
  }
  return parts;
}

}  // namespace headroom
