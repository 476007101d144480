// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.h"
#include "base/time.h"
#include "model/entities.h"

namespace headroom {

// Where a device-nanosecond went. Every one goes to exactly one account.
enum class Account : std::uint8_t {
  kUseful,
  kDiscarded,
  kForeign,
  kStartup,
  kInput,
  kHostCode,
  kTransfer,
  kSync,
  kCheckpoint,
  kValidationHost,
  kTeardown,
  kHung,
  kUnexplained,
  kTaskWaiting,
  kNotUsed,
  kNoTask,
  kUnobserved,
};

struct AccountInfo {
  Account id;
  std::string_view state;  // JSON: busy | idle (a process of the job holds a context) | free (none does) | unobserved
  std::string_view cause;  // JSON
  std::string_view label;  // for people
  std::string_view help;
};

inline constexpr std::array kAccounts{
    AccountInfo{Account::kUseful, "busy", "useful", "computing", "a kernel was resident, for work that counted"},
    AccountInfo{Account::kDiscarded, "busy", "discarded", "discarded work", "a kernel ran for work thrown away"},
    AccountInfo{Account::kForeign, "busy", "foreign", "others' kernels", "a kernel of a process outside the job ran"},
    AccountInfo{Account::kStartup, "idle", "startup", "start-up", "from process start to its first kernel"},
    AccountInfo{Account::kInput, "idle", "input", "input", "the training loop waited for its data"},
    AccountInfo{Account::kHostCode, "idle", "host", "host code", "code of the job ran on the CPU"},
    AccountInfo{Account::kTransfer, "idle", "transfer", "copies", "copies without a kernel"},
    AccountInfo{Account::kSync, "idle", "sync", "synchronising", "synchronisation without a kernel"},
    AccountInfo{Account::kCheckpoint, "idle", "checkpoint", "checkpoint", "the job wrote its state to storage"},
    AccountInfo{Account::kValidationHost, "idle", "validation_host", "validation", "validation on the CPU"},
    AccountInfo{Account::kTeardown, "idle", "teardown", "tear-down", "after the last kernel, until the context went"},
    AccountInfo{Account::kHung, "idle", "hung", "hung", "no CPU, no I/O and no kernel for far longer than usual"},
    AccountInfo{Account::kUnexplained, "idle", "unexplained", "unexplained", "the evidence does not say"},
    AccountInfo{Account::kTaskWaiting, "free", "task_waiting", "task waiting", "work was queued and the device free"},
    AccountInfo{Account::kNotUsed, "free", "not_used", "not used", "the job had the device and never used it"},
    AccountInfo{Account::kNoTask, "free", "no_task", "no task", "nothing was queued for the device"},
    AccountInfo{Account::kUnobserved, "unobserved", "unobserved", "unobserved", "no sample covers this time"},
};
static_assert(in_order_of_ids(kAccounts));
[[nodiscard]] inline const AccountInfo& info(Account account) { return kAccounts[static_cast<std::size_t>(account)]; }
[[nodiscard]] inline bool is_busy(Account account) { return account <= Account::kForeign; }

enum class Confidence : std::uint8_t { kHigh, kMedium, kLow };
[[nodiscard]] std::string_view confidence_name(Confidence confidence);  // "high", "medium", "low"

// A piece of one device's time with one account: the unit the ledger is summed from. Slices of a device are in order
// of time, do not overlap and leave no gap over the ledger's span.
struct Slice {
  Nanos begin = 0, end = 0;
  Account account = Account::kUnexplained;
  std::int64_t pid = 0;  // whose time it is, where that is known; else 0
  char tier = 'N';       // the evidence it rests on
  Confidence confidence = Confidence::kHigh;
  std::int32_t phase = -1;  // index into Explanation::phases, or -1
  std::int32_t task = -1;   // of a batch: index into Ledger::tasks, or -1
  bool operator==(const Slice&) const = default;
};

struct LedgerEntry {
  Account account = Account::kUnexplained;
  std::size_t device = 0;  // index into Ledger::devices
  std::int64_t pid = 0;
  std::int32_t phase = -1;
  char tier = 'N';
  Confidence confidence = Confidence::kHigh;
  Nanos ns = 0;
  std::int32_t task = -1;  // of a batch: index into Ledger::tasks, or -1
  bool operator==(const LedgerEntry&) const = default;
};

// The accounts of devices.size() * (end - begin) nanoseconds; the entries sum to it exactly.
struct Ledger {
  Nanos begin = 0, end = 0;
  std::vector<Device> devices;       // the budget's devices, in order of index
  std::vector<LedgerEntry> entries;  // merged: no two differ in `ns` alone; sorted by device, account, phase, task, pid
  std::vector<std::string> tasks;    // of a batch: their names

  [[nodiscard]] Nanos span() const { return end - begin; }
  [[nodiscard]] Nanos budget() const { return span() * static_cast<Nanos>(devices.size()); }
  [[nodiscard]] Nanos total(Account account, std::optional<std::size_t> device = std::nullopt) const;
  [[nodiscard]] Nanos busy(std::optional<std::size_t> device = std::nullopt) const;  // all three busy accounts
};

}  // namespace headroom
