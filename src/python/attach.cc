// SPDX-License-Identifier: Apache-2.0
#include "python/attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "base/regular_file.h"
#include "python/access.h"
#include "python/elf_symbols.h"
#include "python/maps.h"

namespace headroom::python {

namespace {

constexpr std::size_t kMostMaps = 32 * 1024 * 1024;
constexpr std::array<std::string_view, 4> kNames{"_PyRuntime", "PyCode_Type", "PyFrame_Type", "Py_Version"};

std::string link_target(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string();
}

// The files that may hold an interpreter, the likeliest first.
std::vector<MappedFile> likely(const std::vector<MappedFile>& files, std::string_view exe) {
  constexpr std::size_t kMostFiles = 6;
  std::vector<MappedFile> chosen;
  for (const MappedFile& file : files)
    if (file.executable && (file.path == exe || may_hold_python(file.path))) chosen.push_back(file);
  std::stable_partition(chosen.begin(), chosen.end(),
                        [](const MappedFile& file) { return file.path.find("/libpython") != std::string_view::npos; });
  if (chosen.size() > kMostFiles) chosen.resize(kMostFiles);
  return chosen;
}

// What lies by now where a file was mapped from is the process's choice: a pipe would never answer, and to open a
// device may start something. What is mapped has the path of a file, not of a link.
Result<Fd> open_mapped(const std::string& path) {
  const Fd there(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!there || ::fstat(there.get(), &info) != 0) return tl::unexpected(errno_error(fmt::format("open {}", path)));
  if (!S_ISREG(info.st_mode)) return fail(Errc::kInvalidInput, fmt::format("open {}: not a regular file", path));
  return open_regular(fmt::format("/proc/self/fd/{}", there.get()));
}

Result<ElfSymbols> symbols_of(std::int64_t pid, std::string_view path, bool exe) {
  // The program itself by its link: it may have been deleted or replaced since.
  HR_TRY(const Fd fd,
         exe ? open_read(fmt::format("/proc/{}/exe", pid)) : open_mapped(fmt::format("/proc/{}/root{}", pid, path)));
  const ReadAt read = [&](std::uint64_t offset, std::span<std::byte> into) {
    if (offset > INT64_MAX) return false;
    return ::pread(fd.get(), into.data(), into.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(into.size());
  };
  return find_symbols(read, kNames);
}

// By the names of what is mapped: Python's own extensions and folders tell, where the program's name does not.
int minor_by_names(const std::vector<MappedFile>& files, std::string_view holder) {
  if (const int minor = minor_in_name(holder); minor >= 0) return minor;
  for (const MappedFile& file : files)
    if (const int minor = minor_in_name(file.path); minor >= 0) return minor;
  return -1;
}

bool read_exactly(ProcessMemory& memory, Address at, std::span<std::byte> into) {
  const Region region{at, into.size()};
  return memory.read({&region, 1}, into.data()) == into.size();
}

// PyCode_Type is where the symbols say it is: its name is "code".
bool is_code_type(ProcessMemory& memory, Address type) {
  Address name = 0;
  std::array<char, 5> text{};
  return read_exactly(memory, type + kTypeNameOffset, std::as_writable_bytes(std::span(&name, 1))) &&
         read_exactly(memory, name, std::as_writable_bytes(std::span(text))) &&
         std::memcmp(text.data(), "code", 5) == 0;
}

Result<Layout> layout_of(ProcessMemory& memory, Address runtime, std::optional<Address> version_at, int minor) {
  std::array<std::byte, kDebugOffsetsBytes> head{};
  if (read_exactly(memory, runtime, head)) {
    auto published = published_layout(head);
    if (published || published.error().code != Errc::kNotFound) return published;
  }
  std::uint64_t hex = 0;
  if (version_at && read_exactly(memory, *version_at, std::as_writable_bytes(std::span(&hex, 1))))
    minor = minor_of_version(hex).value_or(minor);
  if (minor < 0) return fail(Errc::kUnsupported, "its version of Python could not be told");
  if (const auto layout = known_layout(minor)) return *layout;
  constexpr int kFirstPublished = 13;
  if (minor >= kFirstPublished && minor <= kNewestMinor)
    return fail(Errc::kBusy, "its Python has not started yet");  // what it publishes is a constant: not yet mapped
  return tl::unexpected(unknown_version(minor));
}

Error gone() { return {Errc::kIo, "the process has ended", ""}; }

}  // namespace

Result<Target> find_python(std::int64_t pid, ProcessMemory& memory) {
#if !defined(__x86_64__)
  return fail(Errc::kUnsupported, "Python stacks are read on x86-64 only");
#endif
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid), kMostMaps);
  if (!maps) {
    if (maps.error().code == Errc::kNoPermission) return tl::unexpected(denied(pid));
    return tl::unexpected(maps.error().code == Errc::kInvalidInput ? maps.error() : gone());
  }
  const auto files = mapped_files(*maps);
  const std::string exe = link_target(fmt::format("/proc/{}/exe", pid));
  for (const MappedFile& file : likely(files, exe)) {
    const auto elf = symbols_of(pid, file.path, file.path == exe);
    if (!elf || !elf->values[1]) continue;
    const auto bias = load_bias(*elf, file.offset, file.begin);
    const int minor = minor_by_names(files, file.path);
    if (!elf->values[0]) return tl::unexpected(unknown_version(std::max(minor, 0)));  // before 3.7 there was none
    if (!bias) continue;
    const Address code_type = *elf->values[1] + *bias;
    if (!is_code_type(memory, code_type)) {
      const int error = memory.take_error();
      if (error == EPERM || error == EACCES) return tl::unexpected(denied(pid));
      if (error == ESRCH) return tl::unexpected(gone());
      return fail(Errc::kBusy, "its Python has not started yet");  // not yet relocated
    }
    HR_TRY(const Layout layout,
           layout_of(memory, *elf->values[0] + *bias,
                     elf->values[3] ? std::optional(*elf->values[3] + *bias) : std::nullopt, minor));
    return Target{layout, *elf->values[0] + *bias, code_type, elf->values[2] ? *elf->values[2] + *bias : 0};
  }
  return fail(Errc::kNotFound, "there is no Python in it");
}

}  // namespace headroom::python
