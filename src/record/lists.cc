// SPDX-License-Identifier: Apache-2.0
#include "record/lists.h"

#include <fmt/format.h>
#include <iterator>
#include <vector>

#include "base/varint.h"
#include "record/codec.h"
#include "record/format.h"

namespace headroom {

namespace {

constexpr std::size_t kChecksumBytes = 4;

// The bytes after a checksum that fits them; nothing else.
std::optional<std::string_view> checked(std::string_view body) {
  if (body.size() < kChecksumBytes || body.size() > kMaxBlobBytes) return std::nullopt;
  const std::string_view rest = body.substr(kChecksumBytes);
  if (ByteReader(body).u32() != checksum(rest)) return std::nullopt;
  return rest;
}

// Steps wrap: times may lie further apart than a Nanos can say.
Nanos minus(Nanos a, Nanos b) {
  return static_cast<Nanos>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
Nanos plus(Nanos a, Nanos b) {
  return static_cast<Nanos>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
Nanos times(Nanos a, std::uint64_t b) { return static_cast<Nanos>(static_cast<std::uint64_t>(a) * b); }

}  // namespace

void ListEncoder::add_checksum() {
  std::string sum;
  put_u32(sum, checksum(std::string_view(body_).substr(kChecksumBytes)));
  body_.replace(0, kChecksumBytes, sum);
}

std::string_view ListEncoder::lists(const NewLists& lists) {
  body_.assign(kChecksumBytes, '\0');
  std::span<const TextId> before;
  std::size_t begin = 0;
  for (const std::size_t end : lists.ends) {
    const auto list = std::span(lists.ids).subspan(begin, end - begin);
    const auto differs = std::mismatch(list.begin(), list.end(), before.begin(), before.end());
    const auto common = static_cast<std::size_t>(differs.first - list.begin());
    put_varint(body_, common);
    put_varint(body_, list.size() - common);
    for (const TextId id : list.subspan(common)) put_varint(body_, id);
    before = list;
    begin = end;
  }
  add_checksum();
  return body_;
}

void ListEncoder::encode_rows() {
  constexpr Nanos kRounded = kMicrosecond;
  const bool rounded = std::all_of(rows_.begin(), rows_.end(), [](const ListRow& r) { return r.at % kRounded == 0; }) &&
                       rows_.back().at / 2 - rows_.front().at / 2 < INT64_MAX / 4;  // else steps might wrap
  const Nanos unit = rounded ? kRounded : 1;
  body_.assign(kChecksumBytes, '\0');
  put_varint(body_, static_cast<std::uint64_t>(unit));
  put_signed(body_, rows_.front().at);
  Nanos last = rows_.front().at, step = 0;
  for (const ListRow& row : rows_) {
    const Nanos now = minus(row.at, last) / unit;
    put_signed(body_, minus(now, step));
    step = now;
    last = row.at;
    put_varint(body_, std::uint64_t{row.list} * 2 + (row.value != 0 ? 1 : 0));
    if (row.value != 0) put_signed(body_, row.value);
  }
  add_checksum();
}

std::optional<std::vector<std::vector<std::uint64_t>>> decode_lists(std::string_view body, std::uint64_t count) {
  const auto rest = checked(body);
  if (!rest || count > rest->size() / 2) return std::nullopt;
  ByteReader reader(*rest);
  std::vector<std::vector<std::uint64_t>> lists;
  std::size_t kept = 0;  // lists that share a beginning take fewer bytes than ids
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t common = reader.varint(), fresh = reader.varint();
    const std::size_t before = lists.empty() ? 0 : lists.back().size();
    if (!reader.ok() || common > before || fresh > reader.left() || (kept += common + fresh) > kMaxSegmentValues)
      return std::nullopt;
    std::vector<std::uint64_t> list;
    list.reserve(static_cast<std::size_t>(common + fresh));
    if (common > 0) list.assign(lists.back().begin(), lists.back().begin() + static_cast<std::ptrdiff_t>(common));
    for (std::uint64_t j = 0; j < fresh; ++j) list.push_back(reader.varint());
    lists.push_back(std::move(list));
  }
  if (!reader.ok() || reader.left() > 0) return std::nullopt;
  return lists;
}

bool decode_list_rows(std::string_view body, std::uint64_t count, std::vector<StoredListRow>& rows) {
  const auto rest = checked(body);
  if (!rest || count > rest->size() / 2) return false;
  ByteReader reader(*rest);
  const std::uint64_t unit = reader.varint();
  Nanos at = reader.signed_varint(), step = 0;
  rows.resize(static_cast<std::size_t>(count));
  bool good = true;  // millions of rows, and hardly ever one that is not: they are all gone through
  for (StoredListRow& row : rows) {
    step = plus(step, reader.signed_varint());
    const Nanos before = std::exchange(at, plus(at, times(step, unit)));
    const std::uint64_t code = reader.varint();
    const std::int64_t value = (code & 1) != 0 ? reader.signed_varint() : 0;
    row = {at, code / 2, static_cast<std::int32_t>(value)};
    good = good && at >= before && row.value == value;
  }
  return good && reader.ok() && reader.left() == 0;
}

Result<void> ListReader::read_texts(Database& database) {
  HR_TRY(Statement row, database.prepare("SELECT id, text FROM text WHERE id > ?1 ORDER BY id"));
  row.bind(1, last_text_);
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    last_text_ = row.integer(0);
    HR_TRYV(hooks_.charge(1 + row.bytes(1).size() / sizeof(std::int64_t)));
    const TextId id = dictionary_.text(row.bytes(1));
    if (id == kNoText) continue;
    texts_[row.integer(0)] = id;
    if (id == recording_.texts.size()) recording_.texts.emplace_back(row.bytes(1));
  }
}

// Lists whose texts are not there are left out, and then the rows that name them.
Result<void> ListReader::read_lists(Database& database) {
  HR_TRY(Statement row, database.prepare("SELECT id, n, fmt, body FROM list WHERE id > ?1 ORDER BY id"));
  row.bind(1, last_list_);
  std::vector<TextId> ids;
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    last_list_ = row.integer(0);
    const auto lists = row.integer(2) == kFmtLists
                           ? decode_lists(row.bytes(3), static_cast<std::uint64_t>(row.integer(1)))
                           : std::nullopt;
    if (!lists) {
      hooks_.lose(LossKind::kDamagedChunk, fmt::format("lists from number {} on", row.integer(0)), std::nullopt, 1);
      continue;
    }
    for (std::size_t i = 0; i < lists->size(); ++i) {
      HR_TRYV(hooks_.charge(1 + (*lists)[i].size()));
      ids.clear();
      for (const std::uint64_t text : (*lists)[i]) {
        const auto known = texts_.find(static_cast<std::int64_t>(text));
        ids.push_back(known == texts_.end() ? kNoText : known->second);
      }
      const ListId id = dictionary_.list(ids);
      if (id == kNoList) continue;
      keep_list(static_cast<std::uint64_t>(row.integer(0)) + i, id);
      if (id == recording_.lists.size()) recording_.lists.push_back(ids);
    }
  }
}

void ListReader::keep_list(std::uint64_t number, ListId id) {
  auto at = lists_.upper_bound(number);
  const bool goes_on = at != lists_.begin() && number - std::prev(at)->first <= std::prev(at)->second.size();
  at = goes_on ? std::prev(at) : lists_.try_emplace(at, number);
  const auto place = static_cast<std::size_t>(number - at->first);
  if (place == at->second.size())
    at->second.push_back(id);
  else
    at->second[place] = id;
}

const ListReader::Run* ListReader::run_of(std::uint64_t number) const {
  const auto next = lists_.upper_bound(number);
  if (next == lists_.begin()) return nullptr;
  const Run& run = *std::prev(next);
  return number - run.first < run.second.size() ? &run : nullptr;
}

Result<void> ListReader::read_list_rows(Database& database) {
  // It sees all of a file, also what is damaged; the rows before that can be read.
  if (last_rows_ == kNone) (void)expect_rows(database);
  HR_TRY(Statement row,
         database.prepare("SELECT source, t0, t1, n, fmt, body, id FROM list_rows WHERE id > ?1 ORDER BY id"));
  row.bind(1, last_rows_);
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    last_rows_ = row.integer(6);
    const SourceId source = hooks_.source(row.integer(0));
    if (source == kNoSource) continue;
    if (const auto expected = expected_.extract(row.integer(0)))
      recording_.tracks[static_cast<std::size_t>(source)].lists.reserve(expected.mapped());
    const LossPlace place{row.integer(1), row.integer(2), source};
    if (row.integer(4) != kFmtListRows ||
        !decode_list_rows(row.bytes(5), static_cast<std::uint64_t>(row.integer(3)), rows_)) {
      hooks_.lose(LossKind::kDamagedChunk, "list rows", place, 1);
      continue;
    }
    HR_TRYV(hooks_.charge(3 * rows_.size()));
    append_list_rows(place);
  }
}

// Growing vectors would touch twice the memory. A row takes two bytes at least, and what the file says of itself is not
// believed for more than `kMostRoom` rows.
Result<void> ListReader::expect_rows(Database& database) {
  constexpr std::int64_t kMostRoom = std::int64_t{1} << 25;
  HR_TRY(Statement row, database.prepare("SELECT source, min(n, length(body) / 2) FROM list_rows"));
  for (std::int64_t left = kMostRoom;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    const std::int64_t rows = row.integer(1);
    if (rows <= 0 || rows > left) continue;
    expected_[row.integer(0)] += static_cast<std::size_t>(rows);
    left -= rows;
  }
}

void ListReader::append_list_rows(const LossPlace& place) {
  auto& track = recording_.tracks[static_cast<std::size_t>(place.source)].lists;
  std::size_t rows = track.size();
  std::uint64_t first = 0;  // of the run at hand: mostly there is only one
  std::span<const ListId> lists;
  Nanos last = track.empty() ? std::numeric_limits<Nanos>::min() : track.back().at;
  track.resize(rows + rows_.size());
  for (const StoredListRow& row : rows_) {
    if (row.list - first >= lists.size()) {
      const Run* run = run_of(row.list);
      first = run == nullptr ? 0 : run->first;
      lists = run == nullptr ? std::span<const ListId>() : run->second;
    }
    const ListId list = lists.empty() ? kNoList : lists[static_cast<std::size_t>(row.list - first)];
    if (list == kNoList || row.at < last) continue;
    track[rows++] = {row.at, list, row.value};
    last = row.at;
  }
  const auto missing = static_cast<std::int64_t>(track.size() - rows);
  track.resize(rows);
  if (missing > 0) hooks_.lose(LossKind::kMissingRows, "rows of lists that could not be read", place, missing);
}

}  // namespace headroom
