// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace headroom {

[[nodiscard]] bool is_packed(std::string_view bytes);  // by gzip or zstd, told by its first bytes

// The bytes of a file, a pipe or standard input ("-"), block by block, unpacked if they are packed by gzip or zstd. A
// file of any size takes the memory of a block.
class ByteStream {
 public:
  // kInvalidInput for a folder and for a terminal.
  [[nodiscard]] static Result<ByteStream> open(const std::string& path);
  // The bytes of `text`, which outlives it: for tests, and for what is in memory anyway.
  [[nodiscard]] static ByteStream of(std::string_view text);
  // What `more` gives, until it gives nothing; it may take from another stream, which outlives this one.
  [[nodiscard]] static ByteStream from(std::function<std::string_view()> more);
  ByteStream(ByteStream&& other) noexcept;
  ByteStream& operator=(ByteStream&& other) noexcept;
  ~ByteStream();

  // The next bytes, until the next call; empty at the end. Packed data that is cut or damaged ends there: see cut().
  [[nodiscard]] std::string_view next();
  // The first bytes, at least `least` of them unless there are fewer; next() gives them again. Only before next().
  [[nodiscard]] std::string_view peek(std::size_t least);
  [[nodiscard]] bool packed() const;
  // Why there are no more bytes where more should be; empty: it ended as it should. It may have been cut off, or be
  // damaged: then what follows in it cannot be known.
  [[nodiscard]] const std::string& cut() const;
  [[nodiscard]] bool damaged() const;
  // kInvalidInput where the bytes ended because they are damaged or cannot be read; packed data that was cut is none of
  // these.
  [[nodiscard]] Result<void> sound() const;
  // Packed data of more bytes than `most` counts as damaged from then on: a few bytes can become any number.
  void be_bounded(std::size_t most = kMost);
  static constexpr std::size_t kMost = std::size_t{1} << 30;
  // All that is left. Of packed data that was cut, what comes before the cut; kInvalidInput where nothing does, where
  // it is damaged, or where there are more than `most` bytes.
  [[nodiscard]] Result<std::string> rest(std::size_t most = kMost);
  // The file, for who wants to map it; -1 of a text.
  [[nodiscard]] int fd() const;

 private:
  struct State;
  explicit ByteStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headroom
