// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <numeric>
#include <set>

#include "base/human.h"
#include "diagnose/headline_parts.h"

namespace headroom::diagnose {

namespace {

std::string tasks_words(const Analysis& a) {
  std::set<std::int32_t> of_window;
  for (const TaskAttempt& attempt : a.job.batch.attempts) of_window.insert(attempt.task);
  const std::size_t tasks = of_window.size();
  return fmt::format("{} {}", human_count(static_cast<std::int64_t>(tasks)), tasks == 1 ? "task" : "tasks");
}

// What else a batch's GPU time went into, after "31 % ".
std::string batch_words(const Analysis& a, Account account) {
  switch (account) {
    case Account::kStartup:
      return "was start-up of " + tasks_words(a);
    case Account::kDiscarded:
      return "went into work that was thrown away";
    case Account::kTaskWaiting:
      return "passed beside waiting tasks, the GPU free";
    case Account::kNoTask:
      return "had no task";
    case Account::kNotUsed:
      return "was given to tasks that used no GPU";
    case Account::kForeign:
      return "went to other people's kernels";
    case Account::kUnexplained:
      return "stood idle for reasons not seen";
    case Account::kUnderWay:
      return a.goes_on ? "went into tasks that are still under way"
                       : "went into tasks that were under way when the recording ended";
    default:
      return fmt::format("was {}", info(account).label);
  }
}

}  // namespace

std::string batch_headline(const Analysis& a) {
  const Nanos useful = a.ledger.total(Account::kUseful), lost = a.ledger.total(Account::kDiscarded);
  const Nanos under_way = a.ledger.total(Account::kUnderWay);
  const bool none_counts = useful == 0 && lost + under_way > 0;
  Account largest = Account::kUseful;
  Nanos most = 0;
  for (const AccountInfo& account : kAccounts) {
    const bool said = account.id == Account::kUseful ||
                      (none_counts && (account.id == Account::kDiscarded || account.id == Account::kUnderWay));
    if (const Nanos ns = a.ledger.total(account.id); !said && ns > most) {
      most = ns;
      largest = account.id;
    }
  }
  std::vector<std::size_t> all(a.devices.size());
  std::iota(all.begin(), all.end(), 0U);
  std::string each = mean_of(apart_words(a, all, [&](std::size_t device) {
    const auto total = [&](Account account) { return a.ledger.total(account, device); };
    return share_of_span(
        a, total(Account::kUseful) + (none_counts ? total(Account::kDiscarded) + total(Account::kUnderWay) : 0));
  }));
  if (each.empty() && all.size() > 1) each = " each";
  std::string text =
      fmt::format("{} computed for {} of {}{}", subject(a, all),
                  human_percent(a.share(useful + (none_counts ? lost + under_way : 0))), span_words(a), each);
  if (none_counts && under_way == 0)
    text += ", all for work that was thrown away";
  else if (none_counts && lost == 0)
    text += a.goes_on ? ", all for tasks that are still under way"
                      : ", all for tasks that were under way when the recording ended";
  else if (none_counts)
    text += ", none of it for a task that has succeeded";
  if (a.share(most) >= a.limits[Threshold::kWorthSaying])
    text += fmt::format("; {} {}", human_percent(a.share(most)), batch_words(a, largest));
  return text + ".";
}

}  // namespace headroom::diagnose
