// SPDX-License-Identifier: Apache-2.0
#include "diagnose/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "analyze/ends.h"
#include "base/human.h"
#include "model/named_causes.h"

namespace headroom::diagnose {

namespace {

using Instant = std::pair<std::size_t, Nanos>;  // of a device

Instant begin_of(const ClaimedPiece& piece) { return {piece.device, piece.begin}; }
Instant end_of(const ClaimedPiece& piece) { return {piece.device, piece.end}; }

}  // namespace

void add_piece(Claims& claims, const ClaimedPiece& piece) {
  if (!claims.empty()) {
    ClaimedPiece& last = claims.back();
    const bool goes_on = last.device == piece.device && last.end == piece.begin && last.account == piece.account;
    if (goes_on && last.where == piece.where) {
      last.end = piece.end;
      return;
    }
  }
  claims.push_back(piece);
}

Claims claim_accounts(const Analysis& a, std::initializer_list<Account> accounts) {
  // A day has a million slices: they are not looked through for what the ledger does not have.
  if (std::all_of(accounts.begin(), accounts.end(), [&](Account id) { return a.ledger.total(id) == 0; })) return {};
  std::array<bool, kAccounts.size()> is_wanted{};
  for (const Account id : accounts) is_wanted[static_cast<std::size_t>(id)] = true;
  return claim(a, [&](std::size_t, const Slice& slice) {
    return is_wanted[static_cast<std::size_t>(slice.account)] && (slice.task < 0 || !a.held_for_nothing(slice)) &&
           !an_end_lies_in(slice);
  });
}

Account main_account(const Claims& claims) {
  if (claims.empty()) return Account::kUnexplained;
  std::array<Nanos, kAccounts.size()> sums{};
  for (const ClaimedPiece& piece : claims) sums[static_cast<std::size_t>(piece.account)] += piece.end - piece.begin;
  return static_cast<Account>(std::max_element(sums.begin(), sums.end()) - sums.begin());
}

bool is_most(const Analysis& a, Nanos part, Nanos whole) {
  return static_cast<double>(part) >= a.limits[Threshold::kMajority] * static_cast<double>(whole);
}

std::vector<std::size_t> devices_of(const Claims& claims) {
  std::vector<std::size_t> devices;
  for (const ClaimedPiece& piece : claims)
    if (devices.empty() || devices.back() != piece.device) devices.push_back(piece.device);
  return devices;
}

std::vector<Window> times_of(const Claims& claims) {
  std::vector<Window> times, more;
  const auto add = [&](const Window& window) {
    if (!more.empty() && window.begin <= more.back().end)
      more.back().end = std::max(more.back().end, window.end);
    else
      more.push_back(window);
  };
  // Those of a device are in order, and so are those of the devices before it.
  for (auto piece = claims.begin(); piece != claims.end();) {
    const std::size_t device = piece->device;
    auto window = times.begin();
    for (; piece != claims.end() && piece->device == device; ++piece) {
      for (; window != times.end() && window->begin < piece->begin; ++window) add(*window);
      add({piece->begin, piece->end});
    }
    for (; window != times.end(); ++window) add(*window);
    std::swap(times, more);
    more.clear();
  }
  return times;
}

double part_claimed(const Claims& claims) {
  Nanos all = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool first = i == 0 || claims[i - 1].device != claims[i].device;
    all += claims[i].end - (first ? claims[i].begin : claims[i - 1].end);
  }
  return as_share(length(claims), all);
}

Claims common(const Claims& one, const Claims& other) {
  Claims both;
  if (one.empty() || other.empty() || end_of(one.back()) <= begin_of(other.front()) ||
      end_of(other.back()) <= begin_of(one.front()))
    return both;
  auto b = other.begin();
  for (const ClaimedPiece& piece : one) {
    while (b != other.end() && end_of(*b) <= begin_of(piece)) ++b;
    for (auto at = b; at != other.end() && begin_of(*at) < end_of(piece); ++at) {
      ClaimedPiece part = piece;
      part.begin = std::max(piece.begin, at->begin);
      part.end = std::min(piece.end, at->end);
      both.push_back(part);
    }
  }
  return both;
}

Claims united(const Claims& one, const Claims& other) {
  Claims apart;
  apart.reserve(one.size() + other.size());
  for (auto a = one.begin(), b = other.begin(); a != one.end() || b != other.end();) {
    const bool first = b == other.end() || (a != one.end() && begin_of(*a) <= begin_of(*b));
    ClaimedPiece piece = first ? *a++ : *b++;
    if (!apart.empty() && apart.back().device == piece.device) piece.begin = std::max(piece.begin, apart.back().end);
    if (piece.begin < piece.end) apart.push_back(piece);
  }
  return apart;
}

Claims without(const Claims& claims, const Claims& taken) {
  Claims left;
  left.reserve(claims.size());
  auto b = taken.begin();
  for (ClaimedPiece piece : claims) {
    while (b != taken.end() && end_of(*b) <= begin_of(piece)) ++b;
    for (auto at = b; at != taken.end() && begin_of(*at) < end_of(piece); ++at) {
      if (at->begin > piece.begin) {
        ClaimedPiece before = piece;
        before.end = at->begin;
        left.push_back(before);
      }
      piece.begin = std::min(piece.end, at->end);
    }
    if (piece.begin < piece.end) left.push_back(piece);
  }
  return left;
}

void say_of_which(Finding& finding, Nanos before) {
  finding.evidence.insert(finding.evidence.begin(),
                          fmt::format("{} of {} count here; the rest belongs to another finding, and what follows is "
                                      "about all of it",
                                      human_duration(finding.cost()), human_duration(before)));
}

namespace {

// A job without a kernel has nothing that could wait: what else was said of its idle time is said by this.
bool says_all(const Analysis& a, const Finding& finding) {
  return finding.cause == Cause::kJobNeverUsesGpu || (a.ledger.busy() == 0 && may_be(finding, Cause::kJobNeverUsesGpu));
}

// Settles `finding` among those that cost more. False: nothing material is left of it.
bool settle(const Analysis& a, std::vector<Finding>& settled, Finding& finding) {
  const Nanos before = finding.cost();
  for (std::size_t i = 0; i < settled.size() && !finding.part_of; ++i) {
    if (settled[i].part_of) continue;
    Claims both = common(finding.claims, settled[i].claims);
    if (both.empty()) continue;
    if (says_all(a, settled[i]) && is_held_idle(both.front().account)) return false;
    if (2 * length(both) >= finding.cost()) {
      finding.part_of = i;
      finding.claims = std::move(both);
    } else {
      finding.claims = without(finding.claims, settled[i].claims);
    }
  }
  for (const Finding& other : settled)
    if (finding.part_of && other.part_of == finding.part_of) finding.claims = without(finding.claims, other.claims);
  if (finding.cost() == before) return true;
  say_of_which(finding, before);  // what it may gain stays: the time that it loses may be of its cause all the same
  return a.material(finding.cost());
}

// A GPU that is lost comes first, however little time it cost: nothing else is worth a look before; then what puts all
// else in doubt, and why the job failed, then by cost; that a job could do without a GPU is a note at the end.
int rank_of(const Finding& finding) {
  if (finding.cause == Cause::kDeviceLost) return -1;
  if (finding.cause == Cause::kOwnersUnknown || finding.cause == Cause::kMonitoringMostlyElse) return 0;
  if (finding.cause == Cause::kMemoryLimited && finding.confidence == Confidence::kHigh) return 0;
  return is_likeliest(finding, Cause::kMoreGpusThanUseful) ? 2 : 1;
}

bool comes_first(const Finding& one, const Finding& other) {
  return std::tuple(rank_of(one), -one.cost()) < std::tuple(rank_of(other), -other.cost());
}

}  // namespace

std::vector<Finding> keep_the_law(const Analysis& a, std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const auto& x, const auto& y) { return x.cost() > y.cost(); });
  std::vector<Finding> settled;
  for (Finding& finding : findings)
    if (settle(a, settled, finding)) settled.push_back(std::move(finding));
  std::vector<std::size_t> wholes;
  for (std::size_t i = 0; i < settled.size(); ++i)
    if (!settled[i].part_of) wholes.push_back(i);
  std::stable_sort(wholes.begin(), wholes.end(),
                   [&](std::size_t x, std::size_t y) { return comes_first(settled[x], settled[y]); });
  std::vector<Finding> ordered;
  for (const std::size_t whole : wholes) {
    const std::size_t place = ordered.size();
    ordered.push_back(std::move(settled[whole]));
    for (Finding& part : settled)
      if (part.part_of == whole) {
        ordered.push_back(std::move(part));
        ordered.back().part_of = place;
      }
  }
  return ordered;
}

Window time_of_kernels(const DeviceTime& device) {
  const auto useful = [](const Slice& slice) { return slice.account == Account::kUseful; };
  const auto first = std::find_if(device.slices.begin(), device.slices.end(), useful);
  if (first == device.slices.end()) return {};
  const auto last = std::find_if(device.slices.rbegin(), device.slices.rend(), useful);
  return {first->begin, last->end};
}

}  // namespace headroom::diagnose
