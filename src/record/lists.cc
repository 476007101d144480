// SPDX-License-Identifier: Apache-2.0
#include "record/lists.h"

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

}  // namespace headroom
