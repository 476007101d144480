// SPDX-License-Identifier: Apache-2.0
#include "fleet/job.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/strings.h"
#include "base/visible.h"
#include "model/entities.h"

namespace headroom::fleet {

namespace {

Nanos& time_of(AccountTimes& times, Account account) { return times[static_cast<std::size_t>(account)]; }

// `kept` nanoseconds of `times`, in their shares; the remainder of rounding goes to the largest.
void add_share(const AccountTimes& times, Nanos kept, AccountTimes& sum) {
  const Nanos all = sum_of(times);
  if (all == 0) return;
  Nanos given = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto part = static_cast<Nanos>(static_cast<long double>(times[i]) * kept / all);
    sum[i] += part;
    given += part;
  }
  sum[static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin())] += kept - given;
}

}  // namespace

// A part of a device's time, and whose it is already: of nobody, of a piece, or outside of what was asked for.
struct Coverage::Part {
  Nanos begin = 0, end = 0;
  Piece* piece = nullptr;
  bool outside = false;
  AccountTimes busy{};  // of this file, in a piece
  Nanos foreign = 0;    // in what is nobody's yet
};

std::vector<Coverage::Part> Coverage::parts_of(Pieces& pieces, Nanos begin, Nanos end) const {
  std::vector<Part> parts;
  const auto add = [&](Nanos until, Piece* piece, bool outside) {
    if (until <= begin) return;
    parts.push_back({begin, until, piece, outside, {}, 0});
    begin = until;
  };
  if (since_) add(std::min(end, *since_), nullptr, true);
  const Nanos last = until_ ? std::clamp(*until_, std::min(begin, end), end) : end;
  auto piece =
      std::lower_bound(pieces.begin(), pieces.end(), begin, [](const Piece& one, Nanos at) { return one.end <= at; });
  for (; piece != pieces.end() && piece->begin < last; ++piece) {
    add(piece->begin, nullptr, false);
    add(std::min(piece->end, last), &*piece, false);
  }
  add(last, nullptr, false);
  add(end, nullptr, true);
  return parts;
}

Coverage::Counted Coverage::count(const std::string& uuid, const std::vector<Slice>& slices, Nanos offset,
                                  const std::string& path) {
  Counted counted;
  if (slices.empty()) return counted;
  Pieces none;
  Pieces& pieces = uuid.empty() ? none : pieces_[uuid];
  auto parts = parts_of(pieces, slices.front().begin + offset, slices.back().end + offset);
  auto part = parts.begin();
  for (const Slice& slice : slices) {
    for (Nanos at = slice.begin + offset; at < slice.end + offset;) {
      while (part->end <= at) ++part;
      const Nanos until = std::min(part->end, slice.end + offset), ns = until - at;
      at = until;
      const bool foreign = slice.account == Account::kForeign;
      if (part->outside) {
        counted.outside += ns;
      } else if (foreign) {
        counted.foreign += ns;
        part->foreign += ns;
      } else if (!part->piece) {
        time_of(counted.accounts, slice.account) += ns;
      } else if (is_busy(slice.account)) {
        time_of(part->busy, slice.account) += ns;
      } else {
        counted.elsewhere += ns;
        counted.with[part->piece->path] += ns;
      }
    }
  }
  Pieces added;
  for (Part& one : parts) {
    if (one.outside) continue;
    if (!one.piece) {
      added.push_back({one.begin, one.end, one.foreign, path});
      continue;
    }
    const Nanos all = sum_of(one.busy), kept = std::min(all, one.piece->room);
    add_share(one.busy, kept, counted.accounts);
    one.piece->room -= kept;
    if (all == kept) continue;
    counted.elsewhere += all - kept;
    counted.with[one.piece->path] += all - kept;
  }
  const auto old = static_cast<std::ptrdiff_t>(pieces.size());
  pieces.insert(pieces.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
  std::inplace_merge(pieces.begin(), pieces.begin() + old, pieces.end(),
                     [](const Piece& x, const Piece& y) { return x.begin < y.begin; });
  return counted;
}

Nanos Coverage::left(const std::string& uuid, Nanos begin, Nanos end) const {
  if (since_) begin = std::max(begin, *since_);
  if (until_) end = std::min(end, *until_);
  if (begin >= end) return 0;
  Nanos left = end - begin;
  const auto found = pieces_.find(uuid);
  if (uuid.empty() || found == pieces_.end()) return left;
  auto piece = std::lower_bound(found->second.begin(), found->second.end(), begin,
                                [](const Piece& one, Nanos at) { return one.end <= at; });
  for (; piece != found->second.end() && piece->begin < end; ++piece)
    left -= std::min(piece->end, end) - std::max(piece->begin, begin);
  return left;
}

namespace {

std::string user_of(const Process& process) {
  if (!process.user.empty()) return process.user;
  return process.uid ? fmt::format("uid {}", *process.uid) : "";
}

// The first process of the recorded job; nothing where a whole box was recorded.
std::optional<Process> root_of(const Recording& recording) {
  std::optional<Process> root;
  for (const Source& source : recording.sources) {
    if (source.kind != SourceKind::kProcess) continue;
    Process process = process_of(source);
    if (process.in_job && (!root || process.start < root->start)) root = std::move(process);
  }
  return root;
}

// Users of processes with contexts on the GPUs, by name.
std::string users_of_gpus(const Recording& recording) {
  std::set<std::string> users;
  for (const Source& source : recording.sources) {
    if (source.kind != SourceKind::kGpuProcess || context_of(source).kind == ContextKind::kGraphics) continue;
    const auto process = recording.find(SourceKind::kProcess, source.key.substr(source.key.find('/') + 1));
    if (!process) continue;
    std::string user = user_of(process_of(recording.sources[static_cast<std::size_t>(*process)]));
    if (!user.empty()) users.insert(std::move(user));
  }
  return join({users.begin(), users.end()}, ", ");
}

FleetNames names_of(const Recording& recording, const Explanation& e, const std::optional<Process>& root) {
  FleetNames names;
  const auto named = [&](FleetBy by) -> std::string& { return names[static_cast<std::size_t>(by)]; };
  std::set<std::string> models;
  for (const Device& device : e.ledger.devices)
    if (!device.name.empty()) models.insert(device.name);
  named(FleetBy::kUser) = root ? user_of(*root) : users_of_gpus(recording);
  named(FleetBy::kProject) = e.meta.cwd;
  named(FleetBy::kJob) = e.path;
  named(FleetBy::kCommand) = e.meta.command.empty() ? "" : typed_line(e.meta.command);
  named(FleetBy::kHost) = e.meta.host;
  named(FleetBy::kGpu) = join({models.begin(), models.end()}, ", ");
  return names;
}

// A GPU on which others ran kernels and the job never had a context was theirs.
bool is_others(const std::vector<Slice>& slices) {
  bool foreign = false;
  for (const Slice& slice : slices) {
    foreign |= slice.account == Account::kForeign;
    if (slice.account != Account::kForeign && slice.account != Account::kNotUsed &&
        slice.account != Account::kUnobserved)
      return false;
  }
  return foreign;
}

bool is_returned(const Finding& finding) {
  if (!finding.cause) return false;
  const auto fixes = fixes_of(*finding.cause);
  return !fixes.empty() && fixes.front().mechanism == Mechanism::kReturns;
}

double saved(double factor) { return factor > 1 ? 1 - 1 / factor : 0; }
Nanos share(Nanos ns, double ratio) { return std::llround(static_cast<double>(ns) * ratio); }

class RowMaker {
 public:
  RowMaker(const Recording& recording, const Explanation& e, const Plan& told, Coverage& coverage)
      : e_(e), told_(told), coverage_(coverage), offset_(e.meta.start_realtime - e.meta.start) {
    const std::optional<Process> root = root_of(recording);
    whole_box_ = !root && e.meta.origin != "run" && e.meta.origin != "batch";
    row_.path = e.path;
    row_.names = names_of(recording, e, root);
    row_.tiers = e.meta.tiers;
    row_.start = e.meta.start_realtime;
    row_.span = e.ledger.span();
    for (const auto& slices : e.slices) held_.push_back(!is_others(slices));
  }

  FleetJob make() {
    add_losses();  // before the time itself counts: then nothing is left of it
    for (std::size_t device = 0; device < e_.slices.size(); ++device)
      if (held_[device]) add_time(device);
    add_what_could_come_back();
    return std::move(row_);
  }

 private:
  // Where no job was recorded, a GPU that no process has is held by nobody.
  [[nodiscard]] bool counts(Account account) const {
    return account != Account::kForeign && !(whole_box_ && account == Account::kNoTask);
  }
  // Only what is the same in every file tells that two have the same GPU and time.
  [[nodiscard]] std::string identity(std::size_t device) const {
    const std::string& uuid = e_.ledger.devices[device].uuid;
    return e_.meta.start_realtime != 0 && uuid.starts_with("GPU-") ? uuid : "";
  }

  void add_time(std::size_t device) {
    std::vector<Slice> slices = e_.slices[device];
    if (whole_box_) std::erase_if(slices, [&](const Slice& slice) { return !counts(slice.account); });
    for (const Slice& slice : slices)
      if (counts(slice.account)) whole_ += slice.end - slice.begin;
    const std::string uuid = identity(device);
    const Coverage::Counted counted = coverage_.count(uuid, slices, offset_, e_.path);
    for (std::size_t i = 0; i < row_.accounts.size(); ++i) row_.accounts[i] += counted.accounts[i];
    row_.foreign += counted.foreign;
    row_.elsewhere += counted.elsewhere;
    for (const auto& [path, ns] : counted.with) with_[path] += ns;
    row_.overlap_unknown |= uuid.empty();
    if (!slices.empty()) ++row_.gpus;
  }

  void add_losses() {
    std::vector<Nanos> costs;
    for (const Finding& finding : e_.findings) {
      Nanos cost = 0;
      for (const ClaimedPiece& piece : finding.claims)
        if (held_[piece.device] && counts(piece.account))
          cost += coverage_.left(identity(piece.device), piece.begin + offset_, piece.end + offset_);
      costs.push_back(cost);
    }
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const Finding& finding = e_.findings[i];
      const Finding* whole = finding.part_of ? &e_.findings[*finding.part_of] : nullptr;
      if (!finding.cause && !whole) row_.undecided += costs[i];
      if (finding.cause && whole && !whole->cause) row_.undecided -= costs[i];
      if (costs[i] == 0) continue;
      row_.losses.push_back({finding.cause, finding.title, costs[i], 0, 1});
      finding_of_.push_back(i);
    }
    row_.undecided = std::max<Nanos>(0, row_.undecided);
  }

  // All that a finding claims of GPUs which compute nothing meanwhile, counted here or elsewhere.
  [[nodiscard]] Nanos returned(const Finding& finding, bool only_unused) const {
    Nanos sum = 0;
    for (const ClaimedPiece& piece : finding.claims)
      if (held_[piece.device] && counts(piece.account) && !is_busy(piece.account) &&
          (!only_unused || piece.account == Account::kNotUsed))
        sum += piece.end - piece.begin;
    return sum;
  }

  void add_what_could_come_back() {
    Gain gain;
    for (const Option& option : told_.options)
      if (option.promises) gain.high = std::max(gain.high, option.gain.high);
    for (const OptionsTogether& step : told_.after) {
      gain.low = std::max(gain.low, step.gain.low);
      gain.high = std::max(gain.high, step.gain.high);
    }
    Nanos let_go = 0, unused = 0;
    for (const Finding& finding : e_.findings) {
      if (!is_returned(finding) || (finding.part_of && is_returned(e_.findings[*finding.part_of]))) continue;
      let_go += returned(finding, false);
      unused += returned(finding, true);
    }
    const Nanos held = row_.held();
    row_.back_high = std::min(held, let_go + share(whole_ - unused, saved(gain.high)));
    if (held == whole_) row_.back_low = std::min(row_.back_high, share(held, saved(gain.low)));
    for (std::size_t i = 0; i < row_.losses.size(); ++i) row_.losses[i].at_most = at_most(finding_of_[i]);
    std::stable_sort(row_.losses.begin(), row_.losses.end(), [](const FleetLoss& x, const FleetLoss& y) {
      return std::pair(x.at_most, x.cost) > std::pair(y.at_most, y.cost);
    });
    const auto most =
        std::max_element(with_.begin(), with_.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
    if (most != with_.end()) row_.counted_with = most->first;
  }

  // By what helps against this finding alone.
  [[nodiscard]] Nanos at_most(std::size_t index) const {
    const Finding& finding = e_.findings[index];
    Nanos most = is_returned(finding) ? returned(finding, false) : 0;
    for (const Option& option : told_.options)
      if (option.promises && option.finding == index) most = std::max(most, share(whole_, saved(option.gain.high)));
    return std::min(most, row_.back_high);
  }

  const Explanation& e_;
  const Plan& told_;
  Coverage& coverage_;
  const Nanos offset_;
  bool whole_box_ = false;
  std::vector<bool> held_;               // by device
  std::vector<std::size_t> finding_of_;  // by loss
  Nanos whole_ = 0;                      // GPU time that would count if no other file had it
  std::map<std::string, Nanos> with_;
  FleetJob row_;
};

}  // namespace

void keep_what_is_told(Explanation& explanation) {
  for (Finding& finding : explanation.findings) {
    if (finding.cause) continue;
    finding.candidates = {Cause::kHealthy};  // nothing helps against it; a set of none is none
    finding.code.reset();
    finding.gain.reset();
  }
}

FleetJob job_of(const Recording& recording, const Explanation& explanation, const Plan& told, Coverage& coverage) {
  return RowMaker(recording, explanation, told, coverage).make();
}

}  // namespace headroom::fleet
