// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/strings.h"

namespace headroom::report {
namespace {

using ::testing::HasSubstr;

std::string many(const std::string& words, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += (i == 0 ? "" : " ") + words;
  return text;
}

// As much to say as there can be: devices unlike one another with many accounts, long findings, problems.
Explanation crowded(std::size_t devices) {
  Explanation e;
  e.headline = many("The GPUs computed for a part of the time and waited.", 3);
  e.path = "run.hrec";
  e.meta.tiers = "NPY";
  e.ledger.end = 100 * kSecond;
  for (std::size_t i = 0; i < devices; ++i) {
    Device device;
    device.index = static_cast<int>(i);
    device.name = "NVIDIA A100";
    e.ledger.devices.push_back(device);
    Nanos left = e.ledger.end;
    for (const Account account : {Account::kUseful, Account::kStartup, Account::kInput, Account::kHostCode,
                                  Account::kSync, Account::kCheckpoint, Account::kTeardown}) {
      LedgerEntry entry;
      entry.account = account;
      entry.device = i;
      entry.ns = std::min(left, static_cast<Nanos>(7 + 5 * i) * kSecond);
      left -= entry.ns;
      if (entry.ns > 0) e.ledger.entries.push_back(entry);
    }
  }
  for (int i = 0; i < 4; ++i) {
    Finding finding;
    finding.title = many("The GPU waits for code of the training process", 2);
    finding.candidates = {Cause::kLoggingUpload, Cause::kSlowStorage,        Cause::kBurstyInput,
                          Cause::kGilContention, Cause::kInputInMainProcess, Cause::kHostGraphBuilding};
    finding.claims = {{0, 0, (40 - i) * kSecond, Account::kHostCode, -1}};
    finding.evidence = std::vector<std::string>(4, many("its Python stacks say this and that", 3));
    finding.advice = many("make that code cheaper; or let it overlap with the kernels", 3);
    finding.bound = many("1.4x at most, if it overlapped", 4);
    finding.would_overturn = many("headroom stacks shows other functions", 3);
    e.findings.push_back(finding);
  }
  e.health = {{"ended_well", Answer::kNo, "exit code 1"}, {"memory", Answer::kNo, many("47.9 of 48 GiB at most", 4)}};
  return e;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(Report, TheTopThreeKeepWhatToTryAndWhatItBrings) {
  for (const auto& [devices, lines] : {std::pair(1U, 40), std::pair(2U, 40), std::pair(4U, 50), std::pair(8U, 50)}) {
    const std::string text = to_text(crowded(devices), {.width = 80});
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), lines) << text;
    EXPECT_EQ(count(text, "\n   Try "), 3U) << text;
    EXPECT_EQ(count(text, "\n   Gain "), 3U) << text;
    EXPECT_THAT(text, HasSubstr("Problems:"));
    EXPECT_THAT(text, HasSubstr("1 finding more with --full"));
  }
}

}  // namespace
}  // namespace headroom::report
