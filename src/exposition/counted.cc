// SPDX-License-Identifier: Apache-2.0
#include "exposition/counted.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace headroom::exposition {

namespace {

// By then what is read every few seconds has been read and written, and most pauses have ended: before its next kernel
// a process is at its tear-down. More would make what is shown older than what it helps.
constexpr Nanos kSettles = 20 * kSecond;
constexpr Nanos kSettlesReadings = 3;  // where they are rare
constexpr std::string_view kFirstLine = "headroom counted 1";

CountedGpu& gpu_of(Counted& counted, const std::string& uuid, bool& known) {
  const auto found =
      std::find_if(counted.gpus.begin(), counted.gpus.end(), [&](const CountedGpu& gpu) { return gpu.uuid == uuid; });
  known = found != counted.gpus.end();
  return known ? *found : counted.gpus.emplace_back(CountedGpu{.uuid = uuid});
}

void add_time(const std::vector<Slice>& slices, Nanos begin, Nanos end, CountedGpu& gpu) {
  for (const Slice& slice : slices)
    if (const Nanos ns = std::min(slice.end, end) - std::max(slice.begin, begin); ns > 0)
      gpu.accounts[static_cast<std::size_t>(slice.account)] += ns;
}

// That a task ended is told at once, with all of its kernels; who owned which of them may still move by a little.
void count_ended_tasks(const std::vector<Slice>& slices, CountedGpu& gpu) {
  Nanos useful = 0, discarded = 0;
  for (const Slice& slice : slices) {
    if (slice.task < 0) continue;
    if (slice.account == Account::kUseful) useful += slice.end - slice.begin;
    if (slice.account == Account::kDiscarded) discarded += slice.end - slice.begin;
  }
  gpu.useful = std::max(gpu.useful, useful);
  gpu.discarded = std::max(gpu.discarded, discarded);
}

std::optional<Account> account_of(std::string_view cause) {
  for (const AccountInfo& account : kAccounts)
    if (account.cause == cause) return account.id;
  return std::nullopt;
}

bool read_gpu(std::string_view line, Counted& counted) {
  const auto words = split(line, '\t');  // UUID, useful, discarded, then "cause=ns"
  if (words.size() < 3 || words[0].empty()) return false;
  const auto useful = parse_number<Nanos>(words[1]), discarded = parse_number<Nanos>(words[2]);
  if (!useful || !discarded || *useful < 0 || *discarded < 0) return false;
  CountedGpu gpu{.uuid = std::string(words[0]), .useful = *useful, .discarded = *discarded};
  Nanos sum = 0;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const auto parts = split(words[i], '=');
    const auto account = account_of(parts[0]);
    const auto ns = parts.size() == 2 ? parse_number<Nanos>(parts[1]) : std::nullopt;
    if (!account || !ns || *ns < 0 || *ns > counted.until - sum) return false;
    gpu.accounts[static_cast<std::size_t>(*account)] += *ns;
    sum += *ns;
  }
  counted.gpus.push_back(std::move(gpu));
  return sum == counted.until;
}

}  // namespace

Nanos countable(const Explanation& explanation) {
  const Nanos span = explanation.ledger.span();
  if (!goes_on(explanation.meta)) return span;
  return std::max<Nanos>(0, span - std::max(kSettles, kSettlesReadings * explanation.meta.interval));
}

void count_on(Counted& counted, const Explanation& explanation, Nanos until) {
  if (counted.recording != explanation.meta.id) counted = {.recording = explanation.meta.id};
  const Ledger& ledger = explanation.ledger;
  const Nanos from = counted.until, to = std::max(from, std::min(until, ledger.span()));
  for (std::size_t device = 0; device < ledger.devices.size(); ++device) {
    bool known = false;
    CountedGpu& gpu = gpu_of(counted, ledger.devices[device].uuid, known);
    add_time(explanation.slices[device], ledger.begin + (known ? from : 0), ledger.begin + to, gpu);
    count_ended_tasks(explanation.slices[device], gpu);
  }
  // One that is no longer of the budget has no other time.
  for (CountedGpu& gpu : counted.gpus)
    if (std::none_of(ledger.devices.begin(), ledger.devices.end(),
                     [&](const Device& device) { return device.uuid == gpu.uuid; }))
      gpu.accounts[static_cast<std::size_t>(Account::kNotUsed)] += to - from;
  counted.until = to;
}

std::string to_text(const Counted& counted) {
  std::string text = fmt::format("{}\n{}\t{}\n", kFirstLine, counted.recording, counted.until);
  for (const CountedGpu& gpu : counted.gpus) {
    text += fmt::format("{}\t{}\t{}", gpu.uuid, gpu.useful, gpu.discarded);
    for (const AccountInfo& account : kAccounts)
      if (const Nanos ns = gpu.accounts[static_cast<std::size_t>(account.id)]; ns > 0)
        text += fmt::format("\t{}={}", account.cause, ns);
    text += '\n';
  }
  return text;
}

std::optional<Counted> counted_of(std::string_view text) {
  const auto lines = split(text, '\n');
  if (lines.size() < 3 || lines[0] != kFirstLine || !lines.back().empty()) return std::nullopt;
  const auto head = split(lines[1], '\t');
  const auto until = head.size() == 2 ? parse_number<Nanos>(head[1]) : std::nullopt;
  if (!until || *until < 0) return std::nullopt;
  Counted counted{.recording = std::string(head[0]), .until = *until};
  for (std::size_t i = 2; i + 1 < lines.size(); ++i)
    if (!read_gpu(lines[i], counted)) return std::nullopt;
  return counted;
}

}  // namespace headroom::exposition
