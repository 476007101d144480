// SPDX-License-Identifier: Apache-2.0
#include "fleet/coverage.h"

#include <algorithm>
#include <iterator>

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

}  // namespace headroom::fleet
