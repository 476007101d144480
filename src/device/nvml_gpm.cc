// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_gpm.h"

#include <algorithm>
#include <cmath>

namespace headroom {

namespace {

struct GpmRow {
  nvml::GpmMetricId id;
  Metric metric;
  double factor;  // the driver's unit -> the metric's
  double high;    // of the driver's value; above is garbage
};

constexpr double kPercent = 0.01, kMebibytes = 1048576.0;
constexpr double kMaxPercent = 100.05;  // rounding; anything more cannot be true
constexpr double kMaxMebibytes = 1e8;   // 100 TB/s

constexpr std::array kGpmRows{
    GpmRow{nvml::kGpmGraphics, Metric::kGraphicsActive, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmSm, Metric::kSmActive, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmSmOccupancy, Metric::kSmOccupancy, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmAnyTensor, Metric::kTensorActive, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmDram, Metric::kDramActive, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmFp64, Metric::kFp64Active, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmFp32, Metric::kFp32Active, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmFp16, Metric::kFp16Active, kPercent, kMaxPercent},
    GpmRow{nvml::kGpmPcieTx, Metric::kPcieTxRate, kMebibytes, kMaxMebibytes},
    GpmRow{nvml::kGpmPcieRx, Metric::kPcieRxRate, kMebibytes, kMaxMebibytes},
    GpmRow{nvml::kGpmNvlinkTx, Metric::kNvlinkTxRate, kMebibytes, kMaxMebibytes},
    GpmRow{nvml::kGpmNvlinkRx, Metric::kNvlinkRxRate, kMebibytes, kMaxMebibytes},
};

// Two samples closer than this show the same refresh of the counters.
constexpr Nanos kMinDistance = 100 * kMillisecond;

void all_absent(Row& row, Absent why) {
  for (const auto& wanted : kGpmRows) row.absent(wanted.metric, why);
}

void put(Row& row, const GpmRow& wanted, const nvml::GpmMetric& got) {
  if (got.result != nvml::kSuccess) {
    row.failed(wanted.metric, got.result);
  } else if (!std::isfinite(got.value) || got.value < 0 || got.value > wanted.high) {
    row.absent(wanted.metric, Absent::kGarbage);
  } else {
    const double most = wanted.factor == kPercent ? 100.0 : wanted.high;
    row.put(wanted.metric, from_unit(wanted.metric, std::min(got.value, most) * wanted.factor));
  }
}

}  // namespace

Gpm::~Gpm() {
  for (auto* sample : samples_) {
    if (sample != nullptr && free_ != nullptr) free_(sample);
  }
}

bool Gpm::supported(const Look& look) {
  if (state_ == State::kUnknown) state_ = prepare(look) ? State::kOn : State::kOff;
  return state_ == State::kOn;
}

bool Gpm::prepare(const Look& look) {
  const NvmlApi& api = look.api;
  if (api.gpm_support == nullptr || api.gpm_alloc == nullptr || api.gpm_free == nullptr || api.gpm_sample == nullptr ||
      api.gpm_metrics == nullptr) {
    return false;
  }
  nvml::GpmSupport support{nvml::kGpmSupportVersion, 0};
  if (api.gpm_support(look.handle, &support) != nvml::kSuccess || support.is_supported_device == 0) return false;
  free_ = api.gpm_free;
  for (auto& sample : samples_) {
    if (api.gpm_alloc(&sample) != nvml::kSuccess) return false;
  }
  request_ = std::make_unique<nvml::GpmMetricsGet>();
  return true;
}

void Gpm::metrics(const Look& look, Row& row) {
  request_->version = nvml::kGpmMetricsGetVersion;
  request_->num_metrics = kGpmRows.size();
  request_->sample1 = samples_[1 - current_];
  request_->sample2 = samples_[current_];
  for (std::size_t i = 0; i < kGpmRows.size(); ++i) {
    request_->metrics[i] = {};
    request_->metrics[i].metric_id = kGpmRows[i].id;
    request_->metrics[i].result = nvml::kUnknown;
  }
  const auto code = look.api.gpm_metrics(request_.get());
  for (std::size_t i = 0; i < kGpmRows.size(); ++i) {
    if (code != nvml::kSuccess)
      row.failed(kGpmRows[i].metric, code);
    else
      put(row, kGpmRows[i], request_->metrics[i]);
  }
}

void Gpm::read(const Look& look, Row& row) {
  if (!supported(look)) return all_absent(row, Absent::kNotSupported);
  if (last_at_ && look.at - *last_at_ < kMinDistance) return;
  const std::size_t next = 1 - current_;
  if (const auto code = look.api.gpm_sample(look.handle, samples_[next]); code != nvml::kSuccess) {
    for (const auto& wanted : kGpmRows) row.failed(wanted.metric, code);
    if (absent_for(code) == Absent::kNotSupported) state_ = State::kOff;
    last_at_.reset();  // the pair is broken: start over
    return;
  }
  current_ = next;
  const bool pair = last_at_.has_value();
  last_at_ = look.at;
  if (pair) metrics(look, row);
}

}  // namespace headroom
