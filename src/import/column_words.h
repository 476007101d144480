// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace headroom {

// What a header such as "GPU Utilization (%)", "gpu0_util", "system.gpu.1.powerWatts" or "elapsed_ms" is about, by its
// words: whoever writes a monitor spells the same few names in a way of their own.
struct WordedColumn {
  std::string_view name;   // as nvidia-smi or `headroom export` calls it: "utilization.gpu"; "timestamp"
  std::string unit;        // as it stands in the header: "MB"
  std::optional<int> gpu;  // the header is about this GPU alone: a column per GPU
  bool says_gpu = false;   // "gpu_mem_used", beside "mem_used" of the host
  bool elapsed = false;    // of a time: since the beginning, by its name
  bool second = false;     // another column of the same thing says it better
};
// Nothing where a word is left that belongs to something else ("cpu_util"), or where too little is said ("memory").
[[nodiscard]] std::optional<WordedColumn> column_by_words(std::string_view header);

// A header that is not known and yet may be the utilisation of a GPU: it has words for both, and none of another part.
[[nodiscard]] bool may_be_utilization(std::string_view header);

// "sm_pct", "SM [%]": a share of the SMs, of a GPU where other columns are readings of one.
[[nodiscard]] bool is_sm_share(std::string_view header);

// What a reason for low clocks is called by nvidia-smi ("reasons.sw_power_cap"), whoever spells it: "SwPowerCap", "HW
// Slowdown"; "reasons.active" of a mask of them all. "power" and "thermal" are reasons where `of_clocks`, and what the
// words say themselves ("throttle_thermal"). "": it is none.
[[nodiscard]] std::string_view reason_of_clocks(std::string_view words, bool of_clocks = false);

// A column of processes and of whose they are, of which one GPU has several at a time.
[[nodiscard]] bool names_processes(std::string_view header);
// Whatever its rows look like, this column does not name GPUs: it is of processes, or of steps, events and the like.
[[nodiscard]] bool is_of_no_gpu(std::string_view header);

// What is longer is no name of a column.
inline constexpr std::size_t kLongestHeader = 512;

// A header in the words that are known: "Mémoire utilisée (Mo)" is "mem used (Mo)", "Auslastung" is "util"; whatever
// the encoding of its letters.
[[nodiscard]] std::string in_english(std::string_view header);

// A header as UTF-8: bytes that are none are Windows-1252, as HWiNFO writes its "[°C]".
[[nodiscard]] std::string header_as_utf8(std::string_view header);

// A header that is a series of Prometheus with its labels, as Grafana's panels write it: NAME{gpu="0", …}; quotes may
// be doubled.
struct Series {
  std::string name;
  std::string of;          // what names its GPU: "" where no label does
  std::optional<int> gpu;  // its number
};
[[nodiscard]] std::optional<Series> series_by_labels(std::string_view header);

// A header of labels alone, {Hostname="a1", gpu="0"}, where a panel leaves the name of the series away.
struct LabelledGpu {
  std::string host;
  int gpu = 0;
};
[[nodiscard]] std::optional<LabelledGpu> gpu_by_labels(std::string_view header);

// "ms" of a time; nothing for what is no unit of time.
[[nodiscard]] std::optional<Nanos> time_unit(std::string_view unit);

}  // namespace headroom
