// SPDX-License-Identifier: Apache-2.0
#include "base/filesystem.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

namespace headroom {

namespace {
struct NetworkFs {
  std::int64_t magic;
  std::string_view name;
};
// Numbers of linux/magic.h and of the file systems' own sources (not all are in Debian 12's header).
constexpr std::array kNetworkFs{
    NetworkFs{0x6969, "nfs"},      NetworkFs{0xff534d42, "cifs"},     NetworkFs{0xfe534d42, "smb2"},
    NetworkFs{0x517b, "smb"},      NetworkFs{0x0bd00bd0, "lustre"},   NetworkFs{0x00c36400, "ceph"},
    NetworkFs{0x65735546, "fuse"}, NetworkFs{0x01021997, "9p"},       NetworkFs{0x5346414f, "afs"},
    NetworkFs{0x47504653, "gpfs"}, NetworkFs{0x19830326, "beegfs"},   NetworkFs{0x7461636f, "ocfs2"},
    NetworkFs{0x73757245, "coda"}, NetworkFs{0x20030528, "orangefs"},
};
}  // namespace

std::string_view network_filesystem_name(std::int64_t magic) {
  const auto found =
      std::find_if(kNetworkFs.begin(), kNetworkFs.end(), [&](const auto& f) { return f.magic == magic; });
  return found == kNetworkFs.end() ? std::string_view() : found->name;
}

std::string network_filesystem(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return "";
  return std::string(network_filesystem_name(static_cast<std::int64_t>(static_cast<std::uint32_t>(info.f_type))));
}

std::optional<std::uint64_t> free_bytes(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> make_private_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (!error && ::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) error = {errno, std::generic_category()};
  if (error) return fail(Errc::kNoPermission, fmt::format("make {}: {}", path, error.message()));
  return {};
}

std::string current_directory() {
  std::error_code gone;
  return std::filesystem::current_path(gone).string();
}

}  // namespace headroom
