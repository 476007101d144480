// SPDX-License-Identifier: Apache-2.0
#include "sim/core/image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "sim/box/presets.h"
#include "sim/core/faults.h"

namespace headroom::sim {
namespace {

constexpr std::uint64_t kImageSeed = 7;
constexpr Nanos kStart = 1000 * kSecond;

// A device on a clock that the test turns.
class Bench {
 public:
  explicit Bench(std::string_view gpu = "A6000", std::vector<Fault> faults = {}) : header_(std::make_unique<Header>()) {
    const auto plan = plan_of_names(gpu);
    header_->box.device_count = 1;
    header_->box.start_monotonic_ns = kStart;
    header_->quantum = 2 * kMillisecond;
    header_->devices[0] = plan->devices[0];
    header_->fault_count = static_cast<std::uint32_t>(faults.size());
    std::copy(faults.begin(), faults.end(), header_->faults);
    image_ = std::make_unique<Image>(first_image(*header_, 0));
  }
  void to(Nanos since_start) {
    BinRecord leg[8];
    BinSink sink{leg, 8};
    for (bool arrived = false; !arrived; sink.count = 0) {
      arrived = advance(*image_, *header_, 0, kStart + since_start, sink);
      bins_.insert(bins_.end(), leg, leg + sink.count);
    }
  }
  void context(std::uint32_t slot, ContextKind kind = ContextKind::kCompute) {
    create_context(*image_, *header_, 0, slot, {100 + slot, kind});
  }
  Nanos launch(std::uint32_t slot, Nanos duration, std::uint32_t share = 1000) {
    return contention::submit(image_->queue, slot, {duration, share});
  }
  void die(std::uint32_t slot) { end_context(*image_, *header_, 0, slot, End::kDied); }
  [[nodiscard]] double energy_j() const { return energy_uj(*image_, *header_, 0) * 1e-6; }

  std::unique_ptr<Header> header_;
  std::unique_ptr<Image> image_;
  std::vector<BinRecord> bins_;
};

Fault fault(FaultKind kind, Nanos at, Nanos duration) {
  Fault f{};
  f.kind = kind;
  f.device = -1;
  f.at = at;
  f.duration = duration;
  return f;
}

TEST(Image, LazyEqualsEagerBinsIncluded) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::mt19937_64 random(kImageSeed + round);
    const auto roll = [&](Nanos low, Nanos high) { return std::uniform_int_distribution<Nanos>(low, high)(random); };
    Bench lazy, eager;
    Nanos now = 0;
    for (int i = 0; i < 60; ++i) {
      const Nanos next = now + roll(0, 60 * kMillisecond);
      for (Nanos at = now; at < next; at += roll(1, 4 * kMillisecond)) eager.to(at);
      eager.to(next);
      lazy.to(next);
      now = next;
      const auto slot = static_cast<std::uint32_t>(roll(0, 5));
      const Nanos work = roll(1, 40 * kMillisecond);
      for (Bench* bench : {&lazy, &eager}) {
        if (!is_live(*bench->image_, slot)) bench->context(slot);
        EXPECT_GT(bench->launch(slot, work, 600), 0);
      }
    }
    EXPECT_EQ(lazy.image_->queue.busy, eager.image_->queue.busy);
    EXPECT_EQ(lazy.image_->held, eager.image_->held);
    EXPECT_DOUBLE_EQ(lazy.energy_j(), eager.energy_j());
    EXPECT_DOUBLE_EQ(lazy.image_->temperature_mc, eager.image_->temperature_mc);
    ASSERT_EQ(lazy.bins_.size(), eager.bins_.size()) << "seed " << kImageSeed + round;
    for (std::size_t i = 0; i < lazy.bins_.size(); ++i) {
      EXPECT_EQ(lazy.bins_[i].index, eager.bins_[i].index);
      EXPECT_EQ(lazy.bins_[i].busy, eager.bins_[i].busy);
      EXPECT_EQ(lazy.bins_[i].kernel[1], eager.bins_[i].kernel[1]);
    }
  }
}

TEST(Image, BinsAreMonotoneAndNeverMoreThanFull) {
  Bench bench;
  bench.context(0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_GT(bench.launch(0, 30 * kMillisecond), 0);
    bench.to(i * 100 * kMillisecond);
  }
  Nanos busy = 0;
  std::int64_t index = 0;
  for (const BinRecord& bin : bench.bins_) {
    EXPECT_EQ(bin.index, ++index);
    EXPECT_GE(bin.busy, busy);
    EXPECT_LE(bin.busy - busy, kSecond / kBinsPerSecond + 1);
    EXPECT_TRUE(is_sealed(bin));
    busy = bin.busy;
  }
  EXPECT_EQ(index, bin_at(*bench.header_, kStart + 1900 * kMillisecond));
}

TEST(Image, UtilisationOverWholePeriodsIsBusyOverElapsed) {
  Bench bench;
  bench.context(0);
  constexpr Nanos kPeriods = 50;
  for (Nanos i = 0; i < kPeriods; ++i) {
    bench.to(i * 100 * kMillisecond);
    EXPECT_GT(bench.launch(0, 30 * kMillisecond, 300), 0);
  }
  bench.to(kPeriods * 100 * kMillisecond);
  const BinRecord& last = bench.bins_.back();
  EXPECT_NEAR(static_cast<double>(last.busy) / static_cast<double>(kPeriods * 100 * kMillisecond), 0.30, 0.005);
  EXPECT_EQ(last.sm_active, last.busy * 300);
}

TEST(Image, ALongIdleGapKeepsTheRingAndTheEnergy) {
  Bench bench;
  bench.context(0);
  EXPECT_GT(bench.launch(0, kSecond), 0);
  bench.to(2 * kSecond);
  bench.bins_.clear();
  bench.to(24 * 3600 * kSecond);
  EXPECT_GE(bench.bins_.size(), static_cast<std::size_t>(kHistoryBins));
  EXPECT_LE(bench.bins_.size(), static_cast<std::size_t>(kHistoryBins) + 2) << "bins that nobody can read are skipped";
  const DeviceInfo& info = bench.header_->devices[0];
  const double expected =
      1e-3 * (24.0 * 3600 * (info.power_idle_mw + info.power_held_mw) + 1.0 * (info.power_busy_mw + info.power_sm_mw));
  EXPECT_NEAR(bench.energy_j(), expected, 1e-3);
}

TEST(Image, PowerFaultsEnterTheEnergyByTheirOverlap) {
  Fault spike = fault(FaultKind::kPower, 3 * kSecond, 2 * kSecond);
  spike.milliwatts = 100'000;
  Bench with("A6000", {spike}), without;
  with.to(4 * kSecond);
  without.to(4 * kSecond);
  EXPECT_NEAR(with.energy_j() - without.energy_j(), 100.0, 1e-6);
  with.to(20 * kSecond);
  without.to(20 * kSecond);
  EXPECT_NEAR(with.energy_j() - without.energy_j(), 200.0, 1e-6);
  EXPECT_GT(with.image_->temperature_mc, without.image_->temperature_mc);
}

TEST(Image, ThrottlingStretchesTheKernelsThatItCovers) {
  Fault throttle = fault(FaultKind::kThrottle, kSecond, kSecond);
  throttle.rate_permille = 500;
  Bench bench("A6000", {throttle});
  bench.context(0);
  EXPECT_GT(bench.launch(0, 3 * kSecond), 0);
  bench.to(10 * kSecond);
  EXPECT_EQ(bench.image_->queue.streams[0].done_at, kStart + 3500 * kMillisecond);
}

TEST(Image, ALostDeviceDropsWorkAndKeepsMemory) {
  Bench bench("A6000", {fault(FaultKind::kLost, kSecond, kSecond)});
  bench.context(0);
  EXPECT_GT(bench.launch(0, 10 * kSecond), 0);
  bench.to(1500 * kMillisecond);
  EXPECT_EQ(bench.image_->queue.busy, kSecond);
  EXPECT_TRUE(lost(*bench.header_, 0, 0, kStart + 1500 * kMillisecond));
  EXPECT_EQ(memory_used(*bench.image_, *bench.header_, 0), bench.header_->devices[0].context_bytes);
  EXPECT_TRUE(lost_between(*bench.header_, 0, 0, kStart, kStart + 5 * kSecond)) << "the context stays broken";
  EXPECT_FALSE(lost(*bench.header_, 0, 0, kStart + 2 * kSecond));
}

TEST(Image, FirstContextStartsAFaultsClock) {
  Fault late = fault(FaultKind::kThrottle, kSecond, kForEver);
  late.at_first_context = 1;
  late.rate_permille = 500;
  Bench bench("A6000", {late});
  bench.to(5 * kSecond);
  EXPECT_EQ(rate_permille(*bench.header_, 0, 0, kStart + 5 * kSecond), 1000u);
  bench.context(0);
  EXPECT_GT(bench.launch(0, 2 * kSecond), 0);
  bench.to(20 * kSecond);
  EXPECT_EQ(bench.image_->queue.streams[0].done_at, kStart + 8 * kSecond) << "one second at full speed, one at half";
}

TEST(Image, DeathFreesMemoryAndSpeedsTheOthersUp) {
  Bench bench;
  bench.context(0);
  bench.context(1);
  bench.image_->contexts[1].memory_bytes += 1 << 30;
  EXPECT_GT(bench.launch(0, kSecond), 0);
  EXPECT_GT(bench.launch(1, 10 * kSecond), 0);
  bench.to(kSecond);
  bench.die(1);
  bench.to(5 * kSecond);
  EXPECT_EQ(bench.image_->queue.streams[0].done_at, kStart + 1500 * kMillisecond);
  EXPECT_EQ(memory_used(*bench.image_, *bench.header_, 0), bench.header_->devices[0].context_bytes);
}

TEST(Image, StaleRowsStayAsLongAsTheScriptSays) {
  Fault stale = fault(FaultKind::kStaleRows, 0, kForEver);
  stale.delay = 3 * kSecond;
  stale.keep_memory = 1;
  Bench bench("A6000", {stale});
  bench.context(2);
  bench.to(kSecond);
  bench.die(2);
  EXPECT_EQ(bench.image_->ghosts[0].pid, 102u);
  EXPECT_GT(memory_used(*bench.image_, *bench.header_, 0), 0u);
  bench.to(5 * kSecond);
  EXPECT_EQ(memory_used(*bench.image_, *bench.header_, 0), 0u);
}

TEST(Image, ASlotsServiceGoesOnWithItsNextOwner) {
  Bench bench;
  bench.context(0);
  EXPECT_GT(bench.launch(0, kSecond), 0);
  bench.to(2 * kSecond);
  bench.die(0);
  bench.context(0);
  EXPECT_EQ(bench.image_->contexts[0].generation, 2u);
  EXPECT_EQ(bench.image_->contexts[0].kernel_base, kSecond);
  EXPECT_GT(bench.launch(0, kSecond), 0);
  bench.to(5 * kSecond);
  EXPECT_EQ(bench.image_->queue.streams[0].kernel, bench.image_->queue.busy);
}

TEST(Faults, CallsAreMatchedByNameOrPrefixAndCounted) {
  Fault third = fault(FaultKind::kError, 0, kForEver);
  third.code = 999;
  third.nth = 3;
  std::strcpy(third.call, "nvmlDeviceGetPower*");
  Bench bench("A6000", {third});
  std::uint64_t counters[kMaxFaults] = {};
  const auto call = [&](const char* name) { return call_fault(*bench.header_, counters, {name, 0}, 0, kStart).error; };
  EXPECT_EQ(call("nvmlDeviceGetTemperature"), 0);
  EXPECT_EQ(call("nvmlDeviceGetPowerUsage"), 0);
  EXPECT_EQ(call("nvmlDeviceGetPowerState"), 0);
  EXPECT_EQ(call("nvmlDeviceGetPowerUsage"), 999);
  EXPECT_EQ(call("nvmlDeviceGetPowerUsage"), 0) << "nth without count: that one call only";
}

}  // namespace
}  // namespace headroom::sim
