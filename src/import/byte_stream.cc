// SPDX-License-Identifier: Apache-2.0
#include "import/byte_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/answers.h"

namespace headroom {

bool is_packed(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd");  // gzip, zstd
}

namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;

// Takes bytes as they come and gives them unpacked.
class Unpacker {
 public:
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  virtual ~Unpacker() = default;
  // Fills `out` from the front of `in`, which it shortens; how many bytes it gave. Nothing for damaged data.
  virtual std::optional<std::size_t> run(std::string_view& in, std::vector<char>& out) = 0;
  [[nodiscard]] virtual bool finished() const = 0;  // the packed data may end here
};

class Gunzip final : public Unpacker {
 public:
  Gunzip() {
    constexpr int kGzipOnly = 15 + 16;  // the largest window; the header of gzip
    good_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  std::optional<std::size_t> run(std::string_view& in, std::vector<char>& out) override {
    if (!good_) return std::nullopt;
    if (ended_ && !in.empty()) {
      if (in.front() != '\x1f') {  // what follows is padding
        in = {};
        return 0;
      }
      if (inflateReset(&stream_) != Z_OK) return std::nullopt;
      ended_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // zlib's interface has no const
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int done = inflate(&stream_, Z_NO_FLUSH);
    if (done != Z_OK && done != Z_STREAM_END && done != Z_BUF_ERROR) return std::nullopt;
    ended_ = done == Z_STREAM_END;
    in.remove_prefix(in.size() - stream_.avail_in);
    return out.size() - stream_.avail_out;
  }
  [[nodiscard]] bool finished() const override { return ended_; }

 private:
  z_stream stream_{};
  bool good_ = false, ended_ = false;
};

class Unzstd final : public Unpacker {
 public:
  Unzstd() {
    constexpr int kLargestWindow = 27;  // 128 MiB: what the program zstd takes unless told otherwise
    if (context_) (void)ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kLargestWindow);
  }
  std::optional<std::size_t> run(std::string_view& in, std::vector<char>& out) override {
    if (!context_) return std::nullopt;
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context_.get(), &to, &from);
    if (ZSTD_isError(left) != 0) return std::nullopt;
    ended_ = left == 0;
    in.remove_prefix(from.pos);
    return to.pos;
  }
  [[nodiscard]] bool finished() const override { return ended_; }

 private:
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_{ZSTD_createDCtx(), ZSTD_freeDCtx};
  bool ended_ = false;
};

// What is wrong with packed data of more than `most` bytes, and what to do.
std::pair<std::string, std::string> too_many_bytes(std::size_t most) {
  return {fmt::format("unpacked it would be more than {} MiB", most >> 20), "unpack it and cut it into parts"};
}

}  // namespace

struct ByteStream::State {
  Fd file;
  int fd = -1;
  std::string_view text;                     // of a stream without a file, what is left of it
  std::function<std::string_view()> source;  // else what gives it
  std::vector<char> block, unpacked;
  std::string_view raw;  // what is left of the block
  std::unique_ptr<Unpacker> unpacker;
  std::string peeked, cut, hint;
  std::size_t most = std::numeric_limits<std::size_t>::max(), unpacked_bytes = 0;
  bool begun = false, at_end = false, damaged = false, gave_peeked = false;

  // The next bytes as they lie there.
  bool fill() {
    if (!raw.empty()) return true;
    if (source) {
      raw = source();
      return !raw.empty();
    }
    if (fd < 0) {
      raw = text.substr(0, kBlock);
      text.remove_prefix(raw.size());
      return !raw.empty();
    }
    block.resize(kBlock);
    for (;;) {
      const ssize_t got = ::read(fd, block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) cut = std::strerror(errno);
      raw = {block.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
      return !raw.empty();
    }
  }

  void begin() {
    begun = true;
    if (!fill() || !is_packed(raw)) return;
    if (raw.starts_with("\x1f\x8b"))
      unpacker = std::make_unique<Gunzip>();
    else
      unpacker = std::make_unique<Unzstd>();
    unpacked.resize(kBlock);
  }

  std::string_view next() {
    if (!begun) begin();
    if (at_end) return {};
    if (!unpacker) {
      at_end = !fill();
      return std::exchange(raw, {});
    }
    for (;;) {
      const bool more = fill();
      const auto got = unpacker->run(raw, unpacked);
      if (got) unpacked_bytes += *got;
      const bool too_many = unpacked_bytes > most;
      if (got && *got > 0 && !too_many) return {unpacked.data(), *got};
      if (got && more && !too_many) continue;
      at_end = true;
      damaged = !got || too_many;
      if (too_many)
        std::tie(cut, hint) = too_many_bytes(most);
      else if (damaged)
        cut = "the packed data is damaged";
      if (got && cut.empty() && !unpacker->finished()) cut = "the packed data ends too early";
      return {};
    }
  }
};

namespace {

// A FIFO is waited for as long as a file system is, for its first bytes: nobody may ever write to it.
Result<Fd> open_named(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISFIFO(info.st_mode) || path.starts_with("/dev/fd/") ||
      path.starts_with("/proc/self/fd/"))
    return open_read(path);
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return tl::unexpected(errno_error(fmt::format("open {}", path)));
  pollfd watched{.fd = fd.get(), .events = POLLIN, .revents = 0};
  if (::poll(&watched, 1, static_cast<int>(kPatienceWithFiles / kMillisecond)) == 0)
    return fail(Errc::kIo, fmt::format("{} is a pipe that nobody writes to", path), "start its writer first");
  (void)::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

}  // namespace

ByteStream::ByteStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteStream::ByteStream(ByteStream&& other) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&& other) noexcept = default;
ByteStream::~ByteStream() = default;

Result<ByteStream> ByteStream::open(const std::string& path) {
  auto state = std::make_unique<State>();
  if (path != "-") {
    HR_TRY(state->file, open_named(path));
  }
  state->fd = state->file ? state->file.get() : STDIN_FILENO;
  struct stat info {};
  if (::fstat(state->fd, &info) != 0) return tl::unexpected(errno_error(fmt::format("stat {}", path)));
  if (S_ISDIR(info.st_mode)) return fail(Errc::kInvalidInput, fmt::format("{}: a folder, not a log", path));
  if (::isatty(state->fd) == 1)
    return fail(Errc::kInvalidInput, fmt::format("{}: a terminal, not a log", path),
                "zcat gpu.csv.gz | headroom why -");
  return ByteStream(std::move(state));
}

ByteStream ByteStream::of(std::string_view text) {
  auto state = std::make_unique<State>();
  state->text = text;
  return ByteStream(std::move(state));
}

ByteStream ByteStream::from(std::function<std::string_view()> more) {
  auto state = std::make_unique<State>();
  state->source = std::move(more);
  return ByteStream(std::move(state));
}

std::string_view ByteStream::next() {
  if (!std::exchange(state_->gave_peeked, true) && !state_->peeked.empty()) return state_->peeked;
  return state_->next();
}

std::string_view ByteStream::peek(std::size_t least) {
  while (state_->peeked.size() < least) {
    const std::string_view more = state_->next();
    if (more.empty()) break;
    state_->peeked += more;
  }
  return state_->peeked;
}

Result<std::string> ByteStream::rest(std::size_t most) {
  std::string text;
  for (std::string_view got = next(); !got.empty(); got = next()) {
    if (got.size() > most - text.size()) {  // before there is memory for it
      auto [what, hint] = packed() ? too_many_bytes(most)
                                   : std::pair(fmt::format("more than {} MiB", most >> 20), "save it to a file first");
      return fail(Errc::kInvalidInput, std::move(what), std::move(hint));
    }
    text.append(got);
  }
  HR_TRYV(sound());
  if (packed() && text.empty()) return fail(Errc::kInvalidInput, "the packed data was cut or is empty");
  return text;
}

Result<void> ByteStream::sound() const {
  if (damaged() || (!packed() && !cut().empty())) return fail(Errc::kInvalidInput, cut(), state_->hint);
  return {};
}

void ByteStream::be_bounded(std::size_t most) { state_->most = most; }

bool ByteStream::packed() const { return state_->unpacker != nullptr; }
const std::string& ByteStream::cut() const { return state_->cut; }
bool ByteStream::damaged() const { return state_->damaged; }
int ByteStream::fd() const { return state_->fd; }

}  // namespace headroom
