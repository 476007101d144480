// SPDX-License-Identifier: Apache-2.0
#include "record/growing.h"

#include <sys/stat.h>

#include "record/file_reader.h"

namespace headroom {

GrowingRecording::GrowingRecording(std::string path, std::span<const Metric> leave_out, std::string id)
    : path_(std::move(path)), leave_out_(leave_out), id_(std::move(id)) {}
GrowingRecording::GrowingRecording(GrowingRecording&&) noexcept = default;
GrowingRecording& GrowingRecording::operator=(GrowingRecording&&) noexcept = default;
GrowingRecording::~GrowingRecording() = default;

const Recording& GrowingRecording::recording() const {
  HR_CHECK(reader_ != nullptr, "a recording is there once it was read");
  return reader_->recording();
}

void GrowingRecording::forget_before(Nanos instant) {
  HR_CHECK(reader_ != nullptr, "what was read is forgotten");
  reader_->forget_before(instant);
}

RecentPart GrowingRecording::recent(Nanos instant) {
  HR_CHECK(reader_ != nullptr, "a recording is there once it was read");
  return reader_->recent(instant);
}

Nanos GrowingRecording::begin() const {
  HR_CHECK(reader_ != nullptr, "a recording is there once it was read");
  return reader_->begin();
}

GrowingRecording::File GrowingRecording::file() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

Result<void> GrowingRecording::read_on() {
  const File now = file();
  HR_TRY(OpenedFile opened, OpenedFile::open(path_));
  const std::uint64_t most = believable_values(path_);
  if (reader_ && !remembers_ && reader_->can_go_on() && opened.cut().empty() && now == read_from_ &&
      reader_->read(opened, path_, most))
    return {};
  auto fresh = std::make_unique<FileReader>(leave_out_);
  if (short_) fresh->keep_short(*short_);
  const auto read = fresh->read(opened, path_, most);
  if (!read) return tl::unexpected(within(path_, opened.explained(read.error())));
  const std::string& id = fresh->recording().meta.id;
  if (!id_.empty() && id != id_) return fail(Errc::kNotFound, "another recording lies there now");
  id_ = id;
  reader_ = std::move(fresh);
  read_from_ = now;
  remembers_ = false;
  return {};
}

}  // namespace headroom
