// SPDX-License-Identifier: Apache-2.0
#include "import/unpack.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace headroom {

namespace {

constexpr std::string_view kGzip = "\x1f\x8b", kZstd = "\x28\xb5\x2f\xfd";
constexpr std::size_t kBlock = std::size_t{1} << 16;

tl::unexpected<Error> too_much(std::size_t most) {
  return fail(Errc::kInvalidInput, fmt::format("unpacked it would be more than {} MiB", most >> 20),
              "unpack it and cut it into parts");
}
tl::unexpected<Error> damaged() { return fail(Errc::kInvalidInput, "the packed data is damaged"); }

Result<std::string> unpack_gzip(std::string_view bytes, std::size_t most) {
  z_stream stream{};
  constexpr int kGzipOnly = 15 + 16;  // the largest window; the header of gzip
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) return fail(Errc::kIo, "zlib has no memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, inflateEnd);
  std::string text;
  std::vector<char> block(kBlock);
  while (!bytes.empty()) {
    const auto size = static_cast<uInt>(std::min(bytes.size(), std::size_t{1} << 30));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib's interface has no const
    stream.avail_in = size;
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int done = inflate(&stream, Z_NO_FLUSH);
    if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR) return damaged();
    const std::size_t used = size - stream.avail_in, got = block.size() - stream.avail_out;
    if (got > most - text.size()) return too_much(most);  // before there is memory for it
    text.append(block.data(), got);
    bytes.remove_prefix(used);
    if (done == Z_STREAM_END && !bytes.starts_with(kGzip)) break;  // what follows is padding
    if (done == Z_STREAM_END && inflateReset(&stream) != Z_OK) return damaged();
    if (done != Z_STREAM_END && used == 0 && got == 0) break;
  }
  return text;
}

Result<std::string> unpack_zstd(std::string_view bytes, std::size_t most) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) return fail(Errc::kIo, "zstd has no memory");
  constexpr int kLargestWindow = 27;  // 128 MiB: what the program zstd takes unless told otherwise
  (void)ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kLargestWindow);
  std::string text;
  std::vector<char> block(kBlock);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (;;) {
    ZSTD_outBuffer out{block.data(), block.size(), 0};
    const std::size_t before = in.pos;
    const std::size_t done = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(done) != 0) return damaged();
    if (out.pos > most - text.size()) return too_much(most);
    text.append(block.data(), out.pos);
    if (out.pos < out.size && (in.pos == in.size || in.pos == before)) return text;
  }
}

}  // namespace

bool is_packed(std::string_view bytes) { return bytes.starts_with(kGzip) || bytes.starts_with(kZstd); }

Result<std::string> unpack(std::string_view bytes, std::size_t most) {
  auto text = bytes.starts_with(kGzip) ? unpack_gzip(bytes, most) : unpack_zstd(bytes, most);
  if (text && text->empty() && !bytes.empty()) return fail(Errc::kInvalidInput, "the packed data was cut or is empty");
  return text;
}

}  // namespace headroom
