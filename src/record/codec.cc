// SPDX-License-Identifier: Apache-2.0
#include "record/codec.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/varint.h"
#include "record/format.h"

namespace headroom {

namespace {

// Level 3 is 2 % smaller and takes 0.8 MiB of context: not worth it in a recorder that may use 8 MiB in all.
constexpr int kZstdLevel = 1;

constexpr std::uint8_t kPlanesMask = 0x0f, kHasAbsent = 0x10;

// Differences wrap at 64 bits on purpose: INT64_MIN - INT64_MAX is a small step modulo 2^64, and comes back exactly.
std::uint64_t magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? ~bits + 1 : bits;
}

void encode_absent(std::span<const std::uint8_t> absent, std::string& out) {
  std::string runs;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < absent.size(); ++count) {
    std::size_t next = i;
    while (next < absent.size() && absent[next] == absent[i]) ++next;
    put_byte(runs, absent[i]);
    put_varint(runs, next - i);
    i = next;
  }
  put_varint(out, count);
  out += runs;
}

// Reads run lengths that must cover `rows` exactly; returns how many rows have a value.
std::size_t decode_absent(ByteReader& reader, std::size_t rows, std::uint8_t* out) {
  std::size_t present = 0, done = 0;
  const std::uint64_t count = reader.varint();
  for (std::uint64_t run = 0; run < count && reader.ok(); ++run) {
    const std::uint8_t code = reader.byte();
    const std::uint64_t length = reader.varint();
    if (length > rows - done) {
      (void)reader.take(std::numeric_limits<std::uint64_t>::max());
      return 0;
    }
    std::fill_n(out + done, length, code);
    done += length;
    if (code == 0) present += length;
  }
  if (done != rows) (void)reader.take(std::numeric_limits<std::uint64_t>::max());
  return present;
}

// The values of rows whose `absent` is 0, without a copy where every row has one.
std::span<const std::int64_t> present_values(std::span<const std::int64_t> values, std::span<const std::uint8_t> absent,
                                             std::vector<std::int64_t>& scratch) {
  if (absent.empty()) return values;
  scratch.clear();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (absent[i] == 0) scratch.push_back(values[i]);
  return scratch;
}

// Where so many bytes more begin.
char* grown_by(std::size_t bytes, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + bytes);
  return out.data() + begin;
}

template <unsigned kPlanes>
void sum_planes(std::string_view planes, std::uint64_t value, std::uint64_t divisor, std::int64_t* out) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(planes.data());
  const std::size_t count = planes.size() / kPlanes;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t code = 0;
    for (unsigned plane = 0; plane < kPlanes; ++plane)
      code |= static_cast<std::uint64_t>(bytes[plane * count + i]) << (8 * plane);
    value += static_cast<std::uint64_t>(unzigzag(code)) * divisor;
    out[i] = static_cast<std::int64_t>(value);
  }
}

// The values after `first`, of `planes` bytes each, lowest bytes first.
void sum_planes(unsigned planes, std::string_view bytes, std::uint64_t first, std::uint64_t divisor,
                std::int64_t* out) {
  switch (planes) {
    case 1:
      return sum_planes<1>(bytes, first, divisor, out);
    case 2:
      return sum_planes<2>(bytes, first, divisor, out);
    case 3:
      return sum_planes<3>(bytes, first, divisor, out);
    case 4:
      return sum_planes<4>(bytes, first, divisor, out);
    case 5:
      return sum_planes<5>(bytes, first, divisor, out);
    case 6:
      return sum_planes<6>(bytes, first, divisor, out);
    case 7:
      return sum_planes<7>(bytes, first, divisor, out);
    default:
      return sum_planes<8>(bytes, first, divisor, out);
  }
}

// Moves `count` packed values to the rows that have one, from the back, and clears the others.
void spread(std::int64_t* values, const std::uint8_t* absent, std::size_t rows, std::size_t count) {
  for (std::size_t row = rows; row-- > 0;) values[row] = absent[row] == 0 ? values[--count] : 0;
}

}  // namespace

std::uint32_t checksum(std::string_view first, std::string_view second) {
  uLong crc = 0;
  for (const auto part : {first, second})  // zlib would start over at a null pointer
    if (!part.empty()) crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  return static_cast<std::uint32_t>(crc);
}

void encode_column(std::span<const std::int64_t> values, std::span<const std::uint8_t> absent, std::string& out) {
  if (std::all_of(absent.begin(), absent.end(), [](std::uint8_t code) { return code == 0; })) absent = {};
  std::vector<std::int64_t> scratch;
  const auto present = present_values(values, absent, scratch);
  std::uint64_t divisor = 0, widest = 0;
  for (std::size_t i = 1; i < present.size() && divisor != 1; ++i)
    divisor = std::gcd(divisor, magnitude(wrapping_sub(present[i], present[i - 1])));
  if (divisor > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) divisor = 1;
  std::vector<std::uint64_t> codes;
  codes.reserve(present.size());
  for (std::size_t i = 1; i < present.size() && divisor > 0; ++i) {
    const std::int64_t step = wrapping_sub(present[i], present[i - 1]);
    widest |= codes.emplace_back(zigzag(divisor == 1 ? step : step / static_cast<std::int64_t>(divisor)));
  }
  const auto planes = static_cast<unsigned>((std::bit_width(widest) + 7) / 8);
  put_byte(out, static_cast<std::uint8_t>(planes | (absent.empty() ? 0U : kHasAbsent)));
  if (!absent.empty()) encode_absent(absent, out);
  if (present.empty()) return;
  put_signed(out, present[0]);
  if (planes == 0) return;
  put_varint(out, divisor);
  char* byte = grown_by(planes * codes.size(), out);
  for (unsigned plane = 0; plane < planes; ++plane)
    for (const std::uint64_t code : codes) *byte++ = static_cast<char>(code >> (8 * plane));
}

bool decode_column(std::string_view bytes, std::size_t rows, std::vector<std::int64_t>& values,
                   std::vector<std::uint8_t>& absent) {
  ByteReader reader(bytes);
  const std::uint8_t flags = reader.byte();
  const unsigned planes = flags & kPlanesMask;
  const std::size_t base = values.size();
  values.resize(base + rows);
  std::size_t count = rows;
  if (flags & kHasAbsent || !absent.empty()) absent.resize(base + rows);
  if (flags & kHasAbsent) count = decode_absent(reader, rows, absent.data() + base);
  if (count > 0) {
    const std::int64_t first = reader.signed_varint();
    std::int64_t* out = values.data() + base;
    *out = first;
    if (planes == 0) {
      std::fill_n(out, count, first);
    } else {
      const std::uint64_t divisor = reader.varint();
      const auto packed = reader.take(static_cast<std::uint64_t>(planes) * (count - 1));
      if (!reader.ok() || planes > 8) return false;
      sum_planes(planes, packed, static_cast<std::uint64_t>(first), divisor, out + 1);
    }
  }
  if (!reader.ok()) return false;  // `absent` need not say then that `count` rows have a value
  if (flags & kHasAbsent) spread(values.data() + base, absent.data() + base, rows, count);
  return reader.ok() && reader.left() == 0;
}

FrameEncoder::FrameEncoder() : context_(ZSTD_createCCtx()) { HR_CHECK(context_, "zstd has no memory"); }

Result<EncodedFrame> FrameEncoder::encode(const Track& track, std::size_t begin, std::size_t end) {
  raw_.clear();
  std::string entries;
  const auto add = [&](std::uint64_t series, std::span<const std::int64_t> values,
                       std::span<const std::uint8_t> absent) {
    const std::size_t before = raw_.size();
    encode_column(values, absent, raw_);
    put_varint(entries, series);
    put_varint(entries, kCodecPlanes);
    put_varint(entries, raw_.size() - before);
  };
  add(kSeriesTime, std::span(track.at).subspan(begin, end - begin), {});
  for (const auto& column : track.columns) {
    const auto absent =
        column.absent.empty() ? std::span<const std::uint8_t>() : std::span(column.absent).subspan(begin, end - begin);
    add(series_of(column.metric), std::span(column.values).subspan(begin, end - begin), absent);
  }
  EncodedFrame frame;
  frame.body.resize(ZSTD_compressBound(raw_.size()));
  const std::size_t size =
      ZSTD_compressCCtx(context_.get(), frame.body.data(), frame.body.size(), raw_.data(), raw_.size(), kZstdLevel);
  if (ZSTD_isError(size)) return fail(Errc::kIo, fmt::format("compress a chunk: {}", ZSTD_getErrorName(size)));
  frame.body.resize(size);
  std::string head;
  put_varint(head, raw_.size());
  put_varint(head, track.columns.size() + 1);
  head += entries;
  put_u32(frame.head, checksum(head, frame.body));
  frame.head += head;
  return frame;
}

FrameDecoder::FrameDecoder() : context_(ZSTD_createDCtx()) { HR_CHECK(context_, "zstd has no memory"); }

Result<std::vector<FrameColumn>> FrameDecoder::open(std::string_view head, std::string_view body) {
  ByteReader reader(head);
  const std::uint32_t expected = reader.u32();
  if (!reader.ok() || checksum(head.substr(4), body) != expected) return fail(Errc::kCorrupt, "its checksum is wrong");
  const std::uint64_t raw_size = reader.varint(), count = reader.varint();
  if (raw_size > kMaxBlobBytes || count > kMaxColumns || count > reader.left())
    return fail(Errc::kCorrupt, "its sizes cannot be true");
  if (raw_.size() < raw_size) raw_.resize(raw_size);
  const std::size_t size = ZSTD_decompressDCtx(context_.get(), raw_.data(), raw_size, body.data(), body.size());
  if (ZSTD_isError(size) || size != raw_size) return fail(Errc::kCorrupt, "its body cannot be decompressed");
  raw_size_ = size;
  ByteReader columns(std::string_view(raw_.data(), raw_size_));
  std::vector<FrameColumn> found;
  found.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    FrameColumn column{reader.varint(), reader.varint(), {}};
    column.bytes = columns.take(reader.varint());
    found.push_back(column);
  }
  if (!reader.ok() || !columns.ok() || found.empty() || found[0].series != kSeriesTime)
    return fail(Errc::kCorrupt, "its columns cannot be told apart");
  return found;
}

}  // namespace headroom
