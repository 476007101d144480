// SPDX-License-Identifier: Apache-2.0
#include "sim/box/box.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "sim/box/blobs.h"
#include "sim/core/image.h"
#include "sim/nvml/variant.h"

namespace headroom::sim {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "headroom-sim-";
constexpr std::string_view kLibraryPrefix = "headroom-simlib-";

// Memory first; a box on a disk would write to it a few times a second.
std::vector<std::string> homes() {
  std::vector<std::string> all{"/dev/shm"};
  if (const char* tmp = std::getenv("TMPDIR"); tmp != nullptr && *tmp != '\0') all.emplace_back(tmp);
  all.emplace_back("/tmp");
  return all;
}

Result<std::string> make_directory(const std::string& parent, std::string_view prefix) {
  std::string path = fmt::format("{}/{}XXXXXX", parent, prefix);
  if (::mkdtemp(path.data()) == nullptr)
    return tl::unexpected(errno_error(fmt::format("create a directory in {}", parent)));
  return path;
}

bool may_execute(const std::string& directory) {
  struct statvfs st {};
  return ::statvfs(directory.c_str(), &st) == 0 && (st.f_flag & ST_NOEXEC) == 0;
}

// Containers often mount /dev/shm without the right to execute: then the libraries live elsewhere, behind a link.
Result<void> make_library_directory(const std::string& box) {
  const std::string path = box + "/lib";
  if (may_execute(box)) {
    if (::mkdir(path.c_str(), 0700) != 0) return tl::unexpected(errno_error("create " + path));
    return {};
  }
  for (const std::string& home : homes()) {
    if (!may_execute(home)) continue;
    auto elsewhere = make_directory(home, kLibraryPrefix);
    if (!elsewhere) continue;
    if (::symlink(elsewhere->c_str(), path.c_str()) != 0) return tl::unexpected(errno_error("create " + path));
    return {};
  }
  return fail(Errc::kNoPermission,
              "no directory for the libraries of the virtual GPUs: /dev/shm and /tmp are mounted noexec",
              "set TMPDIR to a directory from which programs may be run");
}

void remove_box(const std::string& directory) {
  std::error_code ignored;
  const fs::path library = fs::path(directory) / "lib";
  if (fs::is_symlink(library, ignored)) {
    const fs::path target = fs::read_symlink(library, ignored);
    if (target.filename().string().starts_with(kLibraryPrefix)) fs::remove_all(target, ignored);
  }
  fs::remove_all(directory, ignored);
}

// Nobody holds a lock on any byte of `alive`.
bool abandoned(const std::string& directory) {
  struct stat st {};
  if (::lstat(directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != ::geteuid()) return false;
  const Fd alive(::open((directory + "/alive").c_str(), O_RDWR | O_CLOEXEC));
  if (!alive)
    return errno == ENOENT && ::time(nullptr) - st.st_mtime > 60;  // a box that is just being made has none yet
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(alive.get(), F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

std::string prepended(std::string_view name, const std::string& path) {
  const char* old = std::getenv(std::string(name).c_str());
  return old == nullptr || *old == '\0' ? fmt::format("{}={}", name, path) : fmt::format("{}={}:{}", name, path, old);
}

Nanos realtime() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

void fill_header(Header& header, const BoxOptions& options) {
  header.magic = kMagic;
  header.version = kLayoutVersion;
  header.fault_count = static_cast<std::uint32_t>(options.faults.size());
  header.size = model_size(static_cast<std::uint32_t>(options.plan.devices.size()));
  header.schedule = options.schedule;
  header.supervisor_pid = static_cast<std::uint32_t>(::getpid());
  header.quantum = options.quantum;
  const auto put = [](char* to, std::size_t size, const std::string& text) {
    std::strncpy(to, text.c_str(), size - 1);
  };
  put(header.box.driver_version, sizeof header.box.driver_version, options.plan.driver_version);
  put(header.box.nvml_version, sizeof header.box.nvml_version, "12." + options.plan.driver_version);
  header.box.cuda_driver_version = options.plan.cuda_driver_version;
  header.box.device_count = static_cast<std::uint32_t>(options.plan.devices.size());
  header.box.process_list = options.process_list;
  header.box.start_monotonic_ns = clock_now();
  header.box.realtime_offset_ns = realtime() - header.box.start_monotonic_ns;
  std::copy(options.plan.devices.begin(), options.plan.devices.end(), header.devices);
  std::copy(options.faults.begin(), options.faults.end(), header.faults);
}

}  // namespace

Box::Box(Box&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      store_(std::move(other.store_)),
      alive_(std::move(other.alive_)) {}

Box::~Box() {
  if (!directory_.empty()) remove_box(directory_);
}

Result<Box> Box::create(const BoxOptions& options) {
  Error last{Errc::kNoSpace, "no room for the virtual GPUs in /dev/shm or /tmp", "set TMPDIR to a directory with room"};
  for (const std::string& home : homes()) {
    auto directory = make_directory(home, kPrefix);
    if (!directory) {
      last = directory.error();
      continue;
    }
    Box box;
    box.directory_ = std::move(*directory);
    const auto made = [&]() -> Result<void> {
      HR_TRYV(box.claim());
      HR_TRYV(box.write_model(options));
      return box.write_files(options.faults);
    }();
    if (made) return box;
    last = made.error();
    if (last.code == Errc::kInvalidInput) break;
  }
  return tl::unexpected(std::move(last));
}

// `alive` appears under its name only once the supervisor's byte is locked: others take an unlocked one for a dead box.
Result<void> Box::claim() {
  const std::string path = directory_ + "/alive", making = path + ".new";
  alive_ = Fd(::open(making.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!alive_) return tl::unexpected(errno_error("create " + making));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kSupervisorLockByte;
  lock.l_len = 1;
  if (::fcntl(alive_.get(), F_SETLK, &lock) != 0) return tl::unexpected(errno_error("lock " + making));
  if (::rename(making.c_str(), path.c_str()) != 0) return tl::unexpected(errno_error("rename " + making));
  return {};
}

Result<void> Box::write_model(const BoxOptions& options) {
  const std::string path = directory_ + "/model";
  const std::size_t size = model_size(static_cast<std::uint32_t>(options.plan.devices.size()));
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return tl::unexpected(errno_error("create " + path));
  // All of it now: on a full tmpfs a missing page would later kill whoever touches it.
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(size)); error != 0) {
    errno = error;
    return tl::unexpected(errno_error(fmt::format("{}: {} bytes", path, size)));
  }
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return tl::unexpected(errno_error("map " + path));
  auto& header = *static_cast<Header*>(base);
  fill_header(header, options);
  for (std::uint32_t i = 0; i < header.box.device_count; ++i) {
    auto& area = *reinterpret_cast<DeviceArea*>(static_cast<char*>(base) + kAreasOffset + i * sizeof(DeviceArea));
    area.current = std::uint64_t{1} << 16 | kInitialBuffer;
    area.buffers[kInitialBuffer] = {area.current, first_image(header, i)};
  }
  ::munmap(base, size);
  HR_TRYV(write_file(directory_ + "/counters", std::string(kMaxFaults * sizeof(std::uint64_t), '\0')));
  OpenError error{};
  store_ = Store::open(directory_, Access::kWrite, &error);
  if (!store_) return fail(Errc::kIo, fmt::format("{}: cannot be mapped again", path));
  return {};
}

Result<void> Box::write_files(const std::vector<Fault>& faults) {
  HR_TRYV(make_library_directory(directory_));
  HR_TRYV(write_file(directory_ + "/lib/libheadroom_sim.so", sim_library_blob()));
  if (!nvml_library_blob().empty()) HR_TRYV(write_file(directory_ + "/lib/libnvidia-ml.so.1", nvml_library_blob()));
  // Some clients look for the name without the version first, and would find a real driver's.
  const std::string plain = directory_ + "/lib/libnvidia-ml.so";
  if (::symlink("libnvidia-ml.so.1", plain.c_str()) != 0) return tl::unexpected(errno_error("create " + plain));
  std::vector<std::string> missing;
  for (const Fault& fault : faults)
    if (fault.kind == FaultKind::kMissingSymbol) missing.emplace_back(fault.call);
  if (!missing.empty()) {
    const std::string library = directory_ + "/lib/libnvidia-ml.so.1";
    HR_TRYV(write_library_without(library, library, missing));
  }
  const std::string python = directory_ + "/python";
  if (::mkdir(python.c_str(), 0700) != 0) return tl::unexpected(errno_error("create " + python));
  HR_TRYV(write_file(python + "/headroom_sim.py", python_module_blob()));
  const std::string wake = directory_ + "/wake";
  if (::mkfifo(wake.c_str(), 0600) != 0) return tl::unexpected(errno_error("create " + wake));
  return {};
}

std::vector<std::string> Box::environment() const {
  struct stat pids {};  // the namespace whose pids the process lists name
  const std::uint64_t here = ::stat("/proc/self/ns/pid", &pids) == 0 ? pids.st_ino : 0;
  return {"HEADROOM_SIM=" + directory_, fmt::format("HEADROOM_SIM_PIDS={}", here),
          prepended("LD_LIBRARY_PATH", directory_ + "/lib"), prepended("PYTHONPATH", directory_ + "/python")};
}

int sweep_stale_boxes() {
  int removed = 0;
  for (const std::string& home : homes()) {
    std::error_code error;
    for (fs::directory_iterator entry(home, error), end; !error && entry != end; entry.increment(error)) {
      const std::string path = entry->path().string();
      if (!entry->path().filename().string().starts_with(kPrefix) || !abandoned(path)) continue;
      remove_box(path);
      ++removed;
    }
  }
  return removed;
}

}  // namespace headroom::sim
