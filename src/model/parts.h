// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/entities.h"
#include "model/recording.h"

// Several recordings as one: side by side, each the part that it was, on one clock. Nothing of one is taken for
// something of another: two machines have a GPU 0 and a process 4711.
//
// A source of kind kPart stands before the sources of each part. It is also the source of the events and places of
// losses of that part that have none. Keys have the part's name in front; GPUs have their UUID and machine as attrs.
// Times are Unix time, by the wall clock of each part when it began.
namespace headroom {

// How a part is called, and its machine.
struct PartName {
  std::string machine;  // its host; where several machines have one name, "host (2)"
  std::string part;     // the machine, where no other part is of it; else "host:2"
  bool operator==(const PartName&) const = default;
};
// In the order of `metas`. A machine is a host since it was booted.
[[nodiscard]] std::vector<PartName> part_names(std::span<const RecordingMeta> metas);
// Whether all are of one machine; then their GPUs need no host to be named.
[[nodiscard]] bool of_one_machine(std::span<const PartName> names);

// From a part's own clock to Unix time.
[[nodiscard]] inline Nanos to_unix_time(const RecordingMeta& meta) { return meta.start_realtime - meta.start; }

// What all parts are together: where they agree, what each says; from the first instant to the last.
[[nodiscard]] RecordingMeta meta_of_all(std::span<const RecordingMeta> metas);

// A GPU that a part has readings of, unless the job was not given it.
struct PartGpu {
  std::string identity;  // of one GPU the same in every recording; "" where nothing tells
  int index = 0;
  Nanos begin = 0, end = 0;  // of the readings, Unix time
};
[[nodiscard]] std::string gpu_identity(const RecordingMeta& meta, std::string_view uuid);
[[nodiscard]] std::vector<PartGpu> gpus_of_part(const Recording& part);

struct PartToJoin {
  std::string name;  // for sentences: its file
  RecordingMeta meta;
  std::vector<PartGpu> gpus;
};
// The reason why they are no parts of one recording: one without a date, one twice, one that is itself of several, or
// one GPU at one time in two of them.
[[nodiscard]] Result<void> can_be_joined(std::span<const PartToJoin> parts);

// "node07 GPUs 0 and 3, node08 GPU 1", "12 GPUs on 3 machines": of GPUs that have a host.
[[nodiscard]] std::string gpus_on_machines(std::span<const Device> devices);

[[nodiscard]] bool has_parts(const Recording& recording);
[[nodiscard]] Recording merged(std::vector<Recording> parts);
[[nodiscard]] std::vector<RecordingMeta> metas_of_parts(const Recording& recording);
// The recording that was put there, as far as a reader believes it.
[[nodiscard]] Recording part_of(const Recording& recording, std::size_t part);
// By source, the number of its part; all 0 where there are none.
[[nodiscard]] std::vector<std::size_t> parts_of_sources(const Recording& recording);

}  // namespace headroom
