// SPDX-License-Identifier: Apache-2.0
#include "analyze/call_evidence.h"

#include <gtest/gtest.h>

#include <map>

#include "analyze/analysis.h"
#include "analyze/testing_profile.h"

namespace headroom {
namespace {

using testing::Profile;

// Microseconds by account and place.
std::map<std::pair<Account, std::string>, Nanos> spent(const Profile& profile) {
  const Analysis a = analyze(profile.build());
  std::map<std::pair<Account, std::string>, Nanos> sums;
  Nanos sum = 0;
  for (const LedgerEntry& entry : a.ledger.entries) {
    EXPECT_TRUE(entry.tiers.has("C")) << info(entry.account).label;
    sums[{entry.account, entry.where < 0 ? "" : a.ledger.places[static_cast<std::size_t>(entry.where)]}] +=
        entry.ns / kMicrosecond;
    sum += entry.ns;
  }
  EXPECT_EQ(sum, a.ledger.budget());
  return sums;
}
using Spent = std::map<std::pair<Account, std::string>, Nanos>;

TEST(ProfiledCalls, BusyIsExactAndCopiesWithoutAKernelAreTransfer) {
  const Profile profile{.device = {{0, {}},
                                   {10, {"kernel"}},
                                   {20, {"kernel", "copy to the host"}},
                                   {30, {"copy to the host"}},
                                   {45, {"communication kernel"}},
                                   {95, {"memset"}}},
                        .thread = {{0, {"aten::mm", "cudaLaunchKernel"}}, {10, {}}}};
  EXPECT_EQ(spent(profile), (Spent{{{Account::kUseful, ""}, 70},
                                   {{Account::kTransfer, "copy to the host"}, 15},
                                   {{Account::kTransfer, "memset"}, 5},
                                   {{Account::kHostCode, "aten::mm"}, 10}}));
}

TEST(ProfiledCalls, TheDeviceWaitsForTheThreadThatLaunchesNext) {
  const Profile profile{
      .device = {{0, {"kernel"}}, {20, {}}, {60, {"kernel"}}},
      .thread = {{0, {"aten::mm", "cudaLaunchKernel"}},
                 {5, {}},
                 {10, {"aten::item", "cudaStreamSynchronize"}},
                 {70, {}}},
      .second_thread = {{0, {"backward"}}, {40, {}}, {50, {"backward", "cudaLaunchKernel"}}, {60, {}}}};
  EXPECT_EQ(
      spent(profile),
      (Spent{{{Account::kUseful, ""}, 60}, {{Account::kHostCode, "backward"}, 30}, {{Account::kUnexplained, ""}, 10}}));
}

TEST(ProfiledCalls, WaitsLoadersAndWhatWasNotBegunAreToldApart) {
  const Profile profile{.device = {{0, {"kernel"}}, {10, {}}, {70, {"queued"}}, {80, {"kernel"}}},
                        .thread = {{0, {"aten::item", "cudaStreamSynchronize"}},
                                   {20, {"enumerate(DataLoader)#next", "aten::stack"}},
                                   {50, {}},
                                   {60, {"cudaLaunchKernel"}},
                                   {70, {}}}};
  EXPECT_EQ(spent(profile), (Spent{{{Account::kUseful, ""}, 30},
                                   {{Account::kSync, "cudaStreamSynchronize in aten::item"}, 10},
                                   {{Account::kInput, "enumerate(DataLoader)#next"}, 30},
                                   {{Account::kUnexplained, ""}, 10},
                                   {{Account::kHostCode, "cudaLaunchKernel"}, 10},
                                   {{Account::kUnexplained, "launched, not begun"}, 10}}));
}

TEST(ProfiledCalls, PythonFunctionsSpeakWhereNoOperatorAndNoCallIsOpen) {
  const std::string step = "step (train.py:9)";
  const Profile profile{.device = {{0, {"kernel"}}, {10, {}}, {90, {"kernel"}}},
                        .thread = {{0, {"cudaLaunchKernel"}},
                                   {10, {step, "decode (train.py:3)"}},
                                   {30, {step, "__next__ (/site-packages/torch/utils/data/dataloader.py:634)"}},
                                   {50, {step, "_call_impl (/site-packages/torch/nn/modules/module.py:1501)"}},
                                   {60, {"aten::mm"}},
                                   {70, {}},
                                   {80, {"aten::mm", "cudaLaunchKernel"}}}};
  EXPECT_EQ(spent(profile), (Spent{{{Account::kUseful, ""}, 20},
                                   {{Account::kHostCode, "decode (train.py)"}, 20},
                                   {{Account::kInput, "step (train.py)"}, 20},
                                   {{Account::kHostCode, "step (train.py)"}, 10},
                                   {{Account::kHostCode, "aten::mm"}, 20},
                                   {{Account::kUnexplained, ""}, 10}}));
  const Recording recording = profile.build();
  for (const LedgerEntry& entry : analyze(recording).ledger.entries)
    EXPECT_EQ(entry.tiers.has("Y"),
              entry.account == Account::kHostCode && entry.ns == 20 * kMicrosecond && entry.where >= 0 &&
                  analyze(recording).ledger.places[static_cast<std::size_t>(entry.where)] == "decode (train.py)");
}

TEST(ProfiledCalls, OfALibraryThatTheProgramItselfCalledItsFunctionIsNamed) {
  const auto place = [](std::vector<std::string> frames) {
    const Profile profile{.device = {{0, {"kernel"}}, {10, {}}, {90, {"kernel"}}},
                          .thread = {{0, {"cudaLaunchKernel"}}, {10, std::move(frames)}, {89, {"cudaLaunchKernel"}}}};
    const Recording recording = profile.build();
    std::string most;
    Nanos ns = 0;
    const Analysis a = analyze(recording);
    for (const LedgerEntry& entry : a.ledger.entries)
      if (entry.where >= 0 && entry.ns > ns)
        ns = entry.ns, most = a.ledger.places[static_cast<std::size_t>(entry.where)];
    return most;
  };
  const std::string log = "log (/site-packages/wandb/sdk/wandb_run.py:1730)";
  EXPECT_EQ(place({"<module> (main.py:12)", log}), "log (wandb_run.py), called from <module> (main.py)");
  EXPECT_EQ(place({"<module> (main.py:12)", "main (main.py:9)", "wrapper (/site-packages/wandb/sdk/wandb_run.py:390)",
                   log, "publish (/site-packages/wandb/sdk/interface.py:7)"}),
            "log (wandb_run.py), called from main (main.py)");
  EXPECT_EQ(place({"<module> (main.py:12)", "open (/site-packages/PIL/Image.py:3)"}),
            "open (Image.py), called from <module> (main.py)");
  EXPECT_EQ(place({"<module> (main.py:12)", "compute_bleu (metrics.py:30)", log}), "compute_bleu (metrics.py)");
  EXPECT_EQ(place({"<module> (main.py:12)"}), "<module> (main.py)");
}

TEST(ProfiledCalls, ACallThatTakesFarLongerThanALaunchIsNamedWithItsOperator) {
  for (const Nanos length : {20, 2'000}) {
    const Profile profile{.device = {{0, {"kernel"}}, {10, {}}, {20 + length, {"kernel"}}},
                          .thread = {{0, {"cudaLaunchKernel"}},
                                     {10, {"aten::convolution"}},
                                     {12, {"aten::convolution", "cudaLaunchKernel"}},
                                     {12 + length, {}}},
                          .length = length + 40};
    const Spent times = spent(profile);
    EXPECT_EQ(times.contains({Account::kHostCode, "cudaLaunchKernel in aten::convolution"}), length > 1'000);
    EXPECT_TRUE(times.contains({Account::kHostCode, "aten::convolution"}));
  }
}

TEST(ProfiledCalls, AfterTheLastLaunchItsThreadSpeaks) {
  const Profile profile{.device = {{0, {}}, {10, {"kernel"}}, {20, {}}},
                        .thread = {{0, {"cudaLaunchKernel"}}, {10, {"cudaDeviceSynchronize"}}, {50, {}}}};
  EXPECT_EQ(spent(profile), (Spent{{{Account::kUseful, ""}, 10},
                                   {{Account::kHostCode, "cudaLaunchKernel"}, 10},
                                   {{Account::kSync, "cudaDeviceSynchronize"}, 30},
                                   {{Account::kUnexplained, ""}, 50}}));
}

TEST(ProfiledCalls, AnyWindowHasTheSameSlices) {
  const Profile profile{.device = {{0, {"kernel"}}, {20, {}}, {60, {"kernel"}}},
                        .thread = {{0, {"aten::mm"}}, {50, {"cudaLaunchKernel"}}, {60, {}}}};
  const Recording recording = profile.build();
  const Ledger whole = analyze(recording).ledger;
  for (Nanos cut = 0; cut <= 100 * kMicrosecond; cut += 7 * kMicrosecond) {
    const Ledger first = analyze(recording, {0, cut}).ledger,
                 second = analyze(recording, {cut, 100 * kMicrosecond}).ledger;
    for (const AccountInfo& account : kAccounts)
      EXPECT_EQ(first.total(account.id) + second.total(account.id), whole.total(account.id));
  }
}

}  // namespace
}  // namespace headroom
