// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "model/losses.h"

namespace headroom {

namespace {

constexpr std::size_t kMaxSamples = 4096;         // far more than any driver keeps (about 120)
constexpr Nanos kClockStep = 100 * kMillisecond;  // below it is slewing and the reading's own jitter

constexpr unsigned long long kMaxStamp = 8'000'000'000'000'000;  // microseconds that fit in Nanos, the year 2223

constexpr bool by_time(const nvml::Sample& a, const nvml::Sample& b) { return a.time_stamp < b.time_stamp; }

}  // namespace

// Asks once how many samples the driver keeps, so that one call takes them all.
bool SampleRing::prepare(const Look& look) {
  asked_ = true;
  unsigned type = 0, count = 0;
  const auto code = look.api.samples(look.handle, type_, 0, &type, &count, nullptr);
  const bool answered = code == nvml::kSuccess || code == nvml::kInsufficientSize || code == nvml::kNotFound;
  if (absent_for(code) == Absent::kNotSupported && !answered) supported_ = false;
  capacity_ = answered ? count : 0;
  buffer_.resize(std::clamp<std::size_t>(capacity_, 128, kMaxSamples));
  return absent_for(code) != Absent::kDeviceLost || answered;
}

// The driver compares stamps of the wall clock; after a step, what was seen lies elsewhere on it.
void SampleRing::follow_clock_step(Nanos clock_offset) {
  if (last_offset_ && last_seen_ > 0 && std::abs(clock_offset - *last_offset_) > kClockStep) {
    const Nanos shifted = static_cast<Nanos>(last_seen_) - (clock_offset - *last_offset_) / kMicrosecond;
    last_seen_ = shifted > 0 ? static_cast<unsigned long long>(shifted) : 0;
  }
  last_offset_ = clock_offset;
}

void SampleRing::add(const Look& look, Nanos at, const nvml::Value& value, unsigned type) {
  Cell cell{metric_, 0, Absent::kGarbage};
  const auto number = integer_of(value, type);
  if (number && *number >= 0) {
    if (metric_ == Metric::kGpuUtil && *number <= 100) cell = {metric_, *number * (kFullRatio / 100), std::nullopt};
    if (metric_ == Metric::kPower && *number <= 100'000'000) cell = {metric_, *number, std::nullopt};
  }
  look.sink.add_row(source_, at, std::span(&cell, 1));
}

bool SampleRing::drain(const Look& look, const std::string& uuid, SourceId gpu, Nanos since) {
  if (look.api.samples == nullptr || !supported_) return true;
  if (!asked_ && !prepare(look)) return false;
  if (!supported_) return true;
  follow_clock_step(look.clock_offset);
  unsigned type = 0;
  auto count = static_cast<unsigned>(buffer_.size());
  const auto code = look.api.samples(look.handle, type_, last_seen_, &type, &count, buffer_.data());
  if (code == nvml::kInsufficientSize && buffer_.size() < kMaxSamples) {
    buffer_.resize(buffer_.size() * 2);
    return true;  // the next drain has the room
  }
  if (code != nvml::kSuccess) {
    if (absent_for(code) == Absent::kNotSupported) supported_ = false;
    return absent_for(code) != Absent::kDeviceLost;
  }
  const auto fresh = std::span(buffer_).first(std::min<std::size_t>(count, buffer_.size()));
  std::sort(fresh.begin(), fresh.end(), by_time);
  const bool all_new =
      last_seen_ > 0 && capacity_ > 1 && fresh.size() >= capacity_ && fresh.front().time_stamp > last_seen_;
  const Nanos before = last_at_.value_or(since);
  std::int64_t strange = 0;
  for (const auto& sample : fresh) {
    if (sample.time_stamp <= last_seen_) continue;
    if (sample.time_stamp > kMaxStamp) {
      ++strange;
      continue;
    }
    const Nanos exact = static_cast<Nanos>(sample.time_stamp) * kMicrosecond + look.clock_offset;
    const Nanos at = (exact + kMicrosecond / 2) / kMicrosecond * kMicrosecond;
    if (at > look.at + kFuture || (last_at_ && at <= *last_at_)) {
      ++strange;
      continue;
    }
    last_seen_ = sample.time_stamp;
    if (at < since) continue;
    if (source_ == kNoSource) source_ = look.sink.add_source({kind_, uuid, gpu, {}});
    last_at_ = at;
    add(look, at, sample.value, type);
  }
  tell_losses(look, uuid, strange, all_new ? std::optional(before) : std::nullopt, gpu);
  return true;
}

// No account rests on the fine readings of power; those of utilisation place busy time.
void SampleRing::tell_losses(const Look& look, const std::string& uuid, std::int64_t strange,
                             std::optional<Nanos> overrun_since, SourceId gpu) const {
  const auto name = source_kind_name(kind_);
  const bool util = metric_ == Metric::kGpuUtil;
  if (strange > 0)
    look.sink.add_loss(make_loss(util ? LossKind::kGpuUtilRingTimeStamp : LossKind::kGpuPowerRingTimeStamp, strange,
                                 fmt::format("{} of {}: samples out of order or in the future", name, uuid)));
  if (!overrun_since) return;
  look.sink.add_loss(
      make_loss(util ? LossKind::kGpuUtilRingOverrun : LossKind::kGpuPowerRingOverrun, 1,
                fmt::format("{} of {}: the driver's buffer was full when drained; older samples are gone", name, uuid),
                LossPlace{*overrun_since, std::max(look.at, *overrun_since), gpu}));
}

}  // namespace headroom
