// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <zstd.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/recording.h"

namespace headroom {

// A chunk as stored: `head` (checksum, sizes, one entry per column) and `body` (all columns in one zstd frame).
struct EncodedFrame {
  std::string head;
  std::string body;
};

// Rows [begin, end) of a track as one chunk. Holds its scratch buffers and the compressor between calls.
class FrameEncoder {
 public:
  FrameEncoder();
  [[nodiscard]] Result<EncodedFrame> encode(const Track& track, std::size_t begin, std::size_t end);

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::string raw_;
};

// One column of a chunk, not yet decoded.
struct FrameColumn {
  std::uint64_t series = 0;
  std::uint64_t codec = 0;
  std::string_view bytes;
};

// Opens chunks; `columns` stay valid until the next call. Input is not trusted.
class FrameDecoder {
 public:
  FrameDecoder();
  [[nodiscard]] Result<std::vector<FrameColumn>> open(std::string_view head, std::string_view body);

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  std::vector<char> raw_;
  std::size_t raw_size_ = 0;
};

// Column bytes: how many planes, which rows are absent and why, first value, divisor, planes of the deltas' bytes.
void encode_column(std::span<const std::int64_t> values, std::span<const std::uint8_t> absent, std::string& out);
// Appends `rows` values to `values` and, if any is absent or `absent` is not empty, as many to `absent` (which is then
// filled up with zeros from the front). False if the bytes are malformed; what was appended is then undefined.
[[nodiscard]] bool decode_column(std::string_view bytes, std::size_t rows, std::vector<std::int64_t>& values,
                                 std::vector<std::uint8_t>& absent);

// crc32 of head and body, as zlib counts it.
[[nodiscard]] std::uint32_t checksum(std::string_view first, std::string_view second = {});

}  // namespace headroom
