// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>

#include "model/bounds.h"

// Recordings for property tests: legal, and as odd as a legal recording can be.
namespace headroom::testing {

class RandomRecording {
 public:
  explicit RandomRecording(unsigned seed) : random_(seed) {}

  Recording make(std::size_t max_rows = 400) {
    MemorySink sink;
    sink.set_meta(meta());
    const std::size_t sources = 1 + below(6);
    for (std::size_t i = 0; i < sources; ++i) {
      Source source{static_cast<SourceKind>(below(8)), text() + std::to_string(i), kNoSource, attrs()};
      if (i > 0 && below(2) == 0) source.parent = static_cast<SourceId>(below(i));
      const SourceId id = sink.add_source(source);
      rows(sink, id, below(4) == 0 ? 0 : below(max_rows));
    }
    if (below(2) == 0) lists(sink, static_cast<SourceId>(sources), max_rows);
    for (std::size_t i = below(5); i > 0; --i) {
      Event event{static_cast<Nanos>(below(1'000'000)), std::nullopt, "kind" + std::to_string(below(3)), kNoSource,
                  attrs()};
      if (below(2) == 0) event.end = event.at + 5;
      if (below(2) == 0) event.source = static_cast<SourceId>(below(sources));
      sink.add_event(event);
    }
    for (std::size_t i = below(3); i > 0; --i) {
      Loss loss{"loss" + std::to_string(i), static_cast<std::int64_t>(below(9)), static_cast<Severity>(below(4)),
                text()};
      for (std::size_t j = below(3); j > 0; --j) {
        const auto begin = static_cast<Nanos>(below(1'000'000));
        loss.places.push_back({begin, begin + 5, static_cast<SourceId>(below(sources + 1)) - 1});
      }
      sink.add_loss(loss);
    }
    return sink.take();
  }

  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }

 private:
  static constexpr Nanos kSpan = kLongestGpuTime / 8;  // of up to 6 GPUs
  std::string text() {
    static constexpr std::array<std::string_view, 9> kTexts{"",      "GPU-1", "a b",          "\"q\"\\\n\t", "µ-Größe",
                                                            "[N/A]", "0",     "\x01\x7f end", "日本"};
    return std::string(kTexts[below(kTexts.size())]);
  }
  Attrs attrs() {
    Attrs attrs;
    for (std::size_t i = below(4); i > 0; --i) attrs["name" + std::to_string(below(9))] = text();
    return attrs;
  }
  RecordingMeta meta() {
    RecordingMeta meta;
    meta.id = "0123456789abcdef";
    meta.origin = "record";
    meta.host = text();
    meta.stop_reason = "interrupted";
    for (std::size_t i = below(4); i > 0; --i) meta.command.push_back(text());
    meta.tiers = "NP";
    if (below(2) == 0) meta.missing_tiers.push_back({'Y', text()});
    meta.start = static_cast<Nanos>(below(1'000'000));
    meta.end = kSpan - static_cast<Nanos>(below(10));
    meta.start_realtime = 1'700'000'000'000'000'000;
    meta.interval = kSecond;
    if (below(2) == 0) meta.job_pid = 77;
    if (below(2) == 0) meta.exit_code = static_cast<int>(below(256));
    meta.extra = attrs();
    return meta;
  }
  // Of anything: the numbers of list rows. Readings are kept within the bounds of their metrics.
  std::int64_t value(std::int64_t before) {
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min(), kMax = std::numeric_limits<std::int64_t>::max();
    switch (below(8)) {
      case 0:
        return kMin;
      case 1:
        return kMax;
      case 2:
        return static_cast<std::int64_t>(random_());
      case 3:
        return 0;
      case 4:
        return -static_cast<std::int64_t>(below(1'000'000));
      case 5:
        return before > kMax - 10'000'000 ? 0 : before + 10'000'000;
      default:
        return before;
    }
  }
  void rows(MemorySink& sink, SourceId id, std::size_t count) {
    static constexpr std::array kMetrics{Metric::kPower,         Metric::kGpuUtil,     Metric::kMemoryUsed,
                                         Metric::kEventPowerCap, Metric::kTemperature, Metric::kHostLoad1};
    const bool wild = below(3) == 0, complete = below(3) == 0;
    std::array<std::int64_t, kMetrics.size()> last{};
    Nanos at = wild ? -kSpan / 2 : static_cast<Nanos>(below(1'000'000'000));
    for (std::size_t row = 0; row < count; ++row) {
      std::vector<Cell> cells;
      for (std::size_t i = 0; i < kMetrics.size(); ++i) {
        if (!complete && below(5) == 0) continue;
        last[i] = wild ? value(last[i]) : last[i] + static_cast<std::int64_t>(below(300)) - 100;
        last[i] = std::clamp(last[i], info(kMetrics[i]).low, info(kMetrics[i]).high);
        Cell cell{kMetrics[i], last[i], std::nullopt};
        if (!complete && below(9) == 0) cell.absent = kAbsents[below(kAbsents.size())].id;
        cells.push_back(cell);
      }
      if (!cells.empty()) std::shuffle(cells.begin(), cells.end(), random_);
      sink.add_row(id, at, cells);
      at += static_cast<Nanos>(below(3) == 0 ? 0 : below(2'000'000'000));
    }
  }

  void lists(MemorySink& sink, SourceId sources, std::size_t max_rows) {
    std::vector<TextId> texts;
    for (std::size_t i = 1 + below(20); i > 0; --i) texts.push_back(sink.intern(text() + std::to_string(below(9))));
    std::vector<ListId> known;
    for (std::size_t i = 1 + below(20); i > 0; --i) {
      std::vector<TextId> list(below(9));
      for (TextId& id : list) id = texts[below(texts.size())];
      known.push_back(sink.intern_list(list));
    }
    for (SourceId id = 0; id < sources; ++id) {
      const bool wild = below(3) == 0;
      Nanos at = wild ? -kSpan / 2 : static_cast<Nanos>(below(1'000'000'000));
      if (below(2) == 0) at = at / 1000 * 1000;
      std::int32_t number = 0;
      for (std::size_t row = below(max_rows); row > 0; --row) {
        number = wild ? static_cast<std::int32_t>(std::clamp<std::int64_t>(value(number), INT32_MIN, INT32_MAX)) : 0;
        sink.add_list_row(id, {at, known[below(known.size())], number});
        at += below(3) == 0 ? 0 : static_cast<Nanos>(below(50'000)) * (wild ? 1'000'001 : 1000);
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace headroom::testing
