// SPDX-License-Identifier: Apache-2.0
// Whole files, and below SQLite and the checksums (which would stop nearly every mutation) the decoders themselves.
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/varint.h"
#include "record/codec.h"
#include "record/lists.h"
#include "record/reader.h"
#include "record/segment.h"

namespace {

using namespace headroom;

constexpr std::uint64_t kMaxValues = 1 << 16;

// A folder for the files under test, removed at exit.
class Folder {
 public:
  Folder() {
    // In memory where there is such a place: thousands of files are written.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    const auto parent = memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
    std::string name = (parent / "headroom-fuzz-XXXXXX").string();
    HR_CHECK(::mkdtemp(name.data()) != nullptr, "a temporary folder is needed");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file() const { return path_ + "/a.hrec"; }

 private:
  std::string path_;
};

void check(const Recording& recording) {
  for (const auto& list : recording.lists)
    for (const TextId text : list) HR_CHECK(text < recording.texts.size(), "a list's texts are there");
  HR_CHECK(recording.tracks.size() == recording.sources.size(), "a track per source");
  for (const auto& track : recording.tracks) {
    for (std::size_t i = 1; i < track.at.size(); ++i) HR_CHECK(track.at[i - 1] <= track.at[i], "rows in order of time");
    for (const auto& column : track.columns) {
      HR_CHECK(column.values.size() == track.at.size(), "a value per row");
      HR_CHECK(column.absent.empty() || column.absent.size() == track.at.size(), "a reason per row, or none");
    }
    for (const auto& row : track.lists) HR_CHECK(row.list < recording.lists.size(), "a row's list is there");
  }
}

void read_file_bytes(std::string_view bytes) {
  static const Folder folder;
  const Fd fd = std::move(*open_write(folder.file()));
  HR_CHECK(write_all(fd.get(), bytes), "the temporary folder is full");
  const auto recording = read_recording(folder.file(), {.max_values = kMaxValues});
  if (recording) check(*recording);
  (void)summarize(folder.file());
}

void read_column(std::string_view bytes) {
  if (bytes.empty()) return;
  std::vector<std::int64_t> values;
  std::vector<std::uint8_t> absent;
  (void)decode_column(bytes.substr(1), static_cast<std::uint8_t>(bytes[0]), values, absent);
}

void read_frame(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const std::size_t head_size = std::min<std::size_t>(static_cast<std::uint8_t>(bytes[0]), bytes.size() - 1);
  const std::string_view content = bytes.substr(1, head_size), body = bytes.substr(1 + head_size);
  std::string head;
  put_u32(head, checksum(content, body));
  head += content;
  static FrameDecoder decoder;
  const auto columns = decoder.open(head, body);
  if (!columns) return;
  std::vector<std::int64_t> values;
  std::vector<std::uint8_t> absent;
  for (const auto& column : *columns) {
    values.clear(), absent.clear();
    (void)decode_column(column.bytes, 256, values, absent);
  }
}

void read_rows(std::string_view bytes) {
  ByteReader reader(bytes);
  SegmentRows rows;
  while (reader.left() > 0) {
    const auto segment = read_segment(reader);
    if (!segment || segment->rows * segment->series.size() > kMaxValues) return;
    (void)decode_rows(*segment, rows);
  }
}

void read_list_bodies(std::string_view bytes) {
  if (bytes.empty()) return;
  std::string body;
  put_u32(body, checksum(bytes.substr(1)));
  body += bytes.substr(1);
  (void)decode_lists(body, static_cast<std::uint8_t>(bytes[0]));
  std::vector<StoredListRow> rows;
  if (!decode_list_rows(body, static_cast<std::uint8_t>(bytes[0]), rows)) return;
  for (std::size_t i = 1; i < rows.size(); ++i) HR_CHECK(rows[i - 1].at <= rows[i].at, "list rows in order of time");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("SQLite format 3")) read_file_bytes(bytes);
  read_column(bytes);
  read_frame(bytes);
  read_rows(bytes);
  read_list_bodies(bytes);
  return 0;
}
