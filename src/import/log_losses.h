// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/losses.h"

namespace headroom {

// How grave a loss is at least and at most; between them its kind says it.
struct Gravity {
  Severity least = Severity::kInfo, most = Severity::kError;
};

// What a log lost or had mended, counted by kind; the detail is that of the first occurrence.
class LogLosses {
 public:
  // `detail` is called for the first occurrence only: most logs that have an oddity have it in every row. The source of
  // `place` is an index into LogData::gpus.
  template <class Detail>
  void add(LossKind kind, std::int64_t count, const Detail& detail, std::optional<LossPlace> place = std::nullopt,
           Gravity gravity = {}) {
    if (count <= 0) return;
    const bool known = find(kind) != losses_.end();
    Loss loss = make_loss(kind, count, known ? std::string() : detail(), place, gravity.least);
    loss.severity = std::min(loss.severity, gravity.most);
    count_loss(losses_, loss);
  }
  [[nodiscard]] std::int64_t count(LossKind kind) const {
    const auto known = find(kind);
    return known == losses_.end() ? 0 : known->count;
  }
  template <class Moved>
  void move_places(const Moved& moved) {
    for (Loss& loss : losses_)
      for (LossPlace& place : loss.places) place = {moved(place.begin), moved(place.end), place.source};
  }
  [[nodiscard]] const std::vector<Loss>& all() const { return losses_; }

 private:
  [[nodiscard]] std::vector<Loss>::const_iterator find(LossKind kind) const {
    return std::find_if(losses_.begin(), losses_.end(), [&](const Loss& l) { return l.what == info(kind).name; });
  }
  std::vector<Loss> losses_;
};

}  // namespace headroom
