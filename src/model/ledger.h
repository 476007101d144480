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
  kUnderWay,
  kForeign,
  kStartup,
  kInput,
  kHostCode,
  kTransfer,
  kSync,
  kPeers,
  kCheckpoint,
  kValidationHost,
  kTeardown,
  kHung,
  kStopped,
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
    AccountInfo{Account::kUnderWay, "busy", "under_way", "work under way", "a kernel of a task that was still running"},
    AccountInfo{Account::kForeign, "busy", "foreign", "others' kernels", "a kernel of a process outside the job ran"},
    AccountInfo{Account::kStartup, "idle", "startup", "start-up",
                "from process start to its first kernel, and imports after it"},
    AccountInfo{Account::kInput, "idle", "input", "input", "the training loop waited for its data"},
    AccountInfo{Account::kHostCode, "idle", "host", "host code", "code of the job ran on the CPU"},
    AccountInfo{Account::kTransfer, "idle", "transfer", "copies", "copies without a kernel"},
    AccountInfo{Account::kSync, "idle", "sync", "synchronising", "synchronisation without a kernel"},
    AccountInfo{Account::kPeers, "idle", "peers", "other processes", "the job waited for another process of its own"},
    AccountInfo{Account::kCheckpoint, "idle", "checkpoint", "writing",
                "the job wrote to storage: its state, or output"},
    AccountInfo{Account::kValidationHost, "idle", "validation_host", "validation", "validation without kernels"},
    AccountInfo{Account::kTeardown, "idle", "teardown", "tear-down", "after the last kernel, until the context went"},
    AccountInfo{Account::kHung, "idle", "hung", "hung", "no CPU, no I/O and no kernel for far longer than usual"},
    AccountInfo{Account::kStopped, "idle", "stopped", "stopped", "the job's process was stopped by a signal"},
    AccountInfo{Account::kUnexplained, "idle", "unexplained", "unexplained", "the evidence does not say"},
    AccountInfo{Account::kTaskWaiting, "free", "task_waiting", "task waiting", "work was queued and the device free"},
    AccountInfo{Account::kNotUsed, "free", "not_used", "not used", "the job had the device and never used it"},
    AccountInfo{Account::kNoTask, "free", "no_task", "no task", "nothing was queued for the device"},
    AccountInfo{Account::kUnobserved, "unobserved", "unobserved", "unobserved", "no reading says what the GPU did"},
};
static_assert(in_order_of_ids(kAccounts));
[[nodiscard]] inline const AccountInfo& info(Account account) { return kAccounts[static_cast<std::size_t>(account)]; }
[[nodiscard]] inline bool is_busy(Account account) { return account <= Account::kForeign; }
// A process of the job holds the device, and no kernel runs.
[[nodiscard]] inline bool is_held_idle(Account account) {
  return account >= Account::kStartup && account <= Account::kUnexplained;
}

enum class Confidence : std::uint8_t { kHigh, kMedium, kLow };
[[nodiscard]] std::string_view confidence_name(Confidence confidence);  // "high", "medium", "low"

// A set of evidence tiers: N NVML, P /proc, L output lines, Y Python stacks, X marks, C CUPTI, S what a launcher knows
// of its tasks.
class Tiers {
 public:
  static constexpr std::string_view kLetters = "NPLYXCS";
  constexpr Tiers() = default;
  constexpr Tiers(std::string_view letters) {  // implicit: "NP" is how people write one; other letters are left out
    for (const char letter : letters)
      if (const auto place = kLetters.find(letter); place != std::string_view::npos)
        bits_ = static_cast<std::uint8_t>(bits_ | 1U << place);
  }
  constexpr Tiers(const char* letters) : Tiers(std::string_view(letters)) {}
  [[nodiscard]] std::string letters() const;
  [[nodiscard]] constexpr bool has(Tiers other) const { return (bits_ & other.bits_) == other.bits_; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  constexpr Tiers& operator|=(Tiers other) {
    bits_ = static_cast<std::uint8_t>(bits_ | other.bits_);
    return *this;
  }
  auto operator<=>(const Tiers&) const = default;

 private:
  std::uint8_t bits_ = 0;
};

// A piece of one device's time with one account: the unit the ledger is summed from. Slices of a device are in order
// of time, do not overlap and leave no gap over the ledger's span.
struct Slice {
  Nanos begin = 0, end = 0;
  Account account = Account::kUnexplained;
  std::int64_t pid = 0;  // whose time it is, where that is known; else 0
  Tiers tiers = "N";     // the evidence it rests on
  Confidence confidence = Confidence::kHigh;
  std::int32_t phase = -1;  // of those found in the utilisation: index into Explanation::phases, or -1
  std::int32_t task = -1;   // of a batch: index into Ledger::tasks, or -1
  std::int32_t where = -1;  // what code of the job the device waited for: index into Ledger::places, or -1
  std::int32_t named = -1;  // of the phases that the job or its stacks name: index into Explanation::phases, or -1
  bool operator==(const Slice&) const = default;
};

struct LedgerEntry {
  Account account = Account::kUnexplained;
  std::size_t device = 0;  // index into Ledger::devices
  std::int64_t pid = 0;
  std::int32_t phase = -1;
  Tiers tiers = "N";
  Confidence confidence = Confidence::kHigh;
  Nanos ns = 0;
  std::int32_t task = -1;   // of a batch: index into Ledger::tasks, or -1
  std::int32_t where = -1;  // index into Ledger::places, or -1
  bool operator==(const LedgerEntry&) const = default;
};

// A line of the user's code; 0 where none is meant, or it is not known.
struct CodeLine {
  struct Share {
    std::int32_t line = 0;
    double of_looks = 0;  // at the function
    bool operator==(const Share&) const = default;
  };
  std::string file;
  std::int32_t line = 0;
  std::vector<Share> often{};  // the lines of a function that have a good part of the looks at it, most first
  bool operator==(const CodeLine&) const = default;
};
// What stands there, as it ran; "" where that is not known.
using SourceText = std::function<std::string(const CodeLine&)>;

// The accounts of devices.size() * (end - begin) nanoseconds; the entries sum to it exactly.
struct Ledger {
  Nanos begin = 0, end = 0;
  std::vector<Device> devices;       // the budget's devices, in order of index
  std::vector<LedgerEntry> entries;  // merged: no two differ in `ns` alone; sorted by device, account, phase, task, pid
  std::vector<std::string> tasks;    // of a batch: their names
  std::vector<std::string> places;   // functions of the job, by the evidence that names them
  // By place: the line at which most of the idle time there was; that of start-up, of waits for kernels, and of calls
  // that are known to load data, has lines of its own.
  std::vector<CodeLine> lines, lines_of_startup, lines_of_sync, lines_of_input;

  [[nodiscard]] Nanos span() const { return end - begin; }
  [[nodiscard]] Nanos budget() const { return span() * static_cast<Nanos>(devices.size()); }
  [[nodiscard]] Nanos total(Account account, std::optional<std::size_t> device = std::nullopt) const;
  [[nodiscard]] Nanos busy(std::optional<std::size_t> device = std::nullopt) const;  // all busy accounts
  // Of time in this account.
  [[nodiscard]] CodeLine line_of(std::int32_t where, Account account) const;
  [[nodiscard]] std::string spot(std::int32_t where, Account account) const;  // for people: the place with its line
};

}  // namespace headroom
