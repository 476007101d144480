// SPDX-License-Identifier: Apache-2.0
#include "tests/world/world.h"

#include <gmock/gmock.h>

#include <iostream>

#include "base/time.h"
#include "diagnose/explain.h"
#include "report/text.h"

namespace headroom {
namespace {

using testing::HasSubstr;

const Doing kComputing{.gpus_busy = {1}, .cpu = 0.1};
const Doing kPreparing{.cpu = 1, .state = 'R'};  // on the CPU, while the GPU has nothing to do
const Doing kSleeping{.wait = "hrtimer_nanosleep"};

Explanation explained(World& world) { return explain(world.end(), {.path = "run.hrec"}); }

Nanos sum_of(const Ledger& ledger) {
  Nanos sum = 0;
  for (const LedgerEntry& entry : ledger.entries) sum += entry.ns;
  return sum;
}

TEST(World, EachSecondIsInItsAccount) {
  World world;
  world.pass(60, kComputing);
  world.pass(30, kPreparing);
  world.pass(10, kComputing);
  const Explanation answer = explained(world);
  EXPECT_EQ(answer.ledger.budget(), 100 * kSecond);
  EXPECT_EQ(sum_of(answer.ledger), 100 * kSecond);
  EXPECT_EQ(answer.ledger.total(Account::kUseful), 70 * kSecond);
  EXPECT_EQ(answer.ledger.total(Account::kHostCode), 30 * kSecond);
}

TEST(World, AShareOfEachSecondIsThatShareOfTheWhole) {
  World world;
  for (int i = 0; i < 60; ++i) {
    world.pass(1, {.gpus_busy = {0.3}, .cpu = 0.5});
  }
  EXPECT_EQ(explained(world).ledger.busy(), 18 * kSecond);
}

TEST(World, AGpuThatWasNeverUsedCostsAllOfItsTime) {
  World world(2);
  world.pass(60, kComputing);
  const Explanation answer = explained(world);
  EXPECT_EQ(answer.ledger.budget(), 120 * kSecond);
  EXPECT_EQ(answer.ledger.total(Account::kNotUsed, 1), 60 * kSecond);
  EXPECT_EQ(answer.ledger.total(Account::kUseful, 0), 60 * kSecond);
}

TEST(World, TheReportSaysWhatThePartsOfTheHourWere) {
  World world;
  for (int i = 0; i < 360; ++i) {
    world.pass(7, kComputing);
    world.pass(3, kPreparing);
  }
  const Explanation answer = explained(world);
  EXPECT_EQ(answer.ledger.total(Account::kUseful), 2520 * kSecond);
  const std::string text = report::to_text(answer, {});
  EXPECT_THAT(text, HasSubstr("computed for 70 % of 1:00:00")) << text;
  EXPECT_THAT(text, HasSubstr("computing           ███████████████████████████▎             70.0 %      42:00"))
      << text;
}

TEST(World, StepsAreCountedFromFirstToLast) {
  World world;
  world.pass(10, kSleeping);
  world.pass(100, {.gpus_busy = {0.5}, .cpu = 0.5, .steps = 4});
  const Explanation answer = explained(world);
  ASSERT_TRUE(answer.work);
  EXPECT_THAT(report::to_text(answer, {}), HasSubstr("did 4 steps per second"));
}

// How long the readers, the analysis and the report take for a day of one GPU at one reading a second.
void live(int seconds, Nanos at_most) {
  const Nanos begin = monotonic_now();
  World world;
  for (int i = 0; i < seconds / 10; ++i) {
    world.pass(7, kComputing);
    world.pass(3, kPreparing);
  }
  const Explanation answer = explained(world);
  const std::string text = report::to_text(answer, {});
  const Nanos took = monotonic_now() - begin;
  std::cout << "TRUTH " << seconds << " s of a GPU in " << took / kMillisecond << " ms\n";
  EXPECT_EQ(answer.ledger.total(Account::kUseful), seconds / 10 * 7 * kSecond);
  EXPECT_LE(took, at_most);
}

TEST(World, OnAQuietMachineAnHourTakesATenthOfASecond) { live(3600, 100 * kMillisecond); }
TEST(World, OnAQuietMachineADayTakesThreeSeconds) { live(86400, 3 * kSecond); }

}  // namespace
}  // namespace headroom
