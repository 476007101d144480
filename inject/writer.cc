// SPDX-License-Identifier: Apache-2.0
#include "inject/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/texts.h"

namespace headroom::inject {

int state = kUnknown;

namespace {

constexpr std::size_t kNamesAt = HEADROOM_MARKS_HEADER_BYTES;
constexpr std::size_t kRecordsAt = kNamesAt + HEADROOM_MARKS_NAMES_BYTES;
constexpr std::size_t kFileBytes = kRecordsAt + std::size_t{HEADROOM_MARKS_SLOTS} * sizeof(headroom_mark);
constexpr std::size_t kLeastFree = 16 * kFileBytes;  // that the file leaves to others: it may be their shared memory
constexpr unsigned kShareOfNames = 100, kShareOfValues = 50;  // % of the names' part
// Making a ring takes 0.1 ms, where a disk is slow more: a thread that comes meanwhile waits so long for it, and then
// does without this mark.
constexpr int kWaits = 200;
constexpr long kWaitNs = 100'000;

char directory[4096];
char* ring = nullptr;           // the mapped file
std::uint64_t next_record = 0;  // atomic
std::uint32_t forks = 0;        // on the way from the first process to this one
TextTable texts;

struct OfThread {
  std::uint32_t id, forks;  // `forks` as it was, and 1
};
__thread OfThread of_thread __attribute__((tls_model("initial-exec")));  // small enough for libraries loaded later, too

void forget_in_child() {
  ++forks;
  if (state == kOn || state == kMaking) __atomic_store_n(&state, static_cast<int>(kWanted), __ATOMIC_RELEASE);
}

// Text that is put together without the C library's formatting, which is not for signal handlers.
struct Line {
  char text[4096 + 64];
  std::size_t length = 0;
  void add(const char* more) {
    const std::size_t bytes = strlen(more);
    if (length + bytes >= sizeof text) return;
    memcpy(text + length, more, bytes + 1);
    length += bytes;
  }
  void add(std::uint64_t number, unsigned base, int digits) {
    char reversed[32], in_order[33];
    int count = 0;
    for (; (number != 0 || count < digits) && count < 32; number /= base)
      reversed[count++] = "0123456789abcdef"[number % base];
    for (int i = 0; i < count; ++i) in_order[i] = reversed[count - 1 - i];
    in_order[count] = '\0';
    add(in_order);
  }
};

std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  constexpr unsigned kDoNotWait = 1;  // GRND_NONBLOCK
  if (syscall(SYS_getrandom, &number, sizeof number, kDoNotWait) != sizeof number)
    number = static_cast<std::uint64_t>(clock_ns(CLOCK_BOOTTIME)) * 0x9e3779b97f4a7c15U;
  return number;
}

// Field 22 of /proc/self/stat; 0: not known.
std::uint64_t start_ticks() {
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* at = strrchr(text, ')');  // the end of field 2, which may hold anything
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  return at != nullptr ? strtoull(at + 1, nullptr, 10) : 0;
}

// All of the file is there before it is mapped, and others have room beside it. A file beyond the limit of the process
// would be a signal.
bool allocate(int fd) {
  rlimit limit{};
  struct statvfs disk {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < kFileBytes) return false;
  if (fstatvfs(fd, &disk) != 0 || disk.f_bavail < (kFileBytes + kLeastFree) / (disk.f_frsize != 0 ? disk.f_frsize : 1))
    return false;
  return posix_fallocate(fd, 0, kFileBytes) == 0;
}

char* map_file(const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void* mapped = MAP_FAILED;
  if (allocate(fd)) mapped = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) return static_cast<char*>(mapped);
  unlink(path);
  return nullptr;
}

void write_header(char* file) {
  headroom_marks_header header{};
  header.version = HEADROOM_MARKS_VERSION;
  header.header_bytes = HEADROOM_MARKS_HEADER_BYTES;
  header.names_bytes = HEADROOM_MARKS_NAMES_BYTES;
  header.slots = HEADROOM_MARKS_SLOTS;
  header.record_bytes = sizeof(headroom_mark);
  header.pid = getpid();
  header.start_ticks = start_ticks();
  memcpy(header.via, via(), sizeof header.via);
  memcpy(file, &header, sizeof header);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(file, HEADROOM_MARKS_MAGIC, sizeof header.magic);  // last: now it is a ring
}

bool make_file() {
  Line path;
  path.add(directory);
  path.add("/");
  path.add(static_cast<std::uint64_t>(getpid()), 10, 1);
  path.add("-");
  path.add(random_number(), 16, 16);
  path.add(".marks");
  char* file = map_file(path.text);
  if (file == nullptr) return false;
  if (ring != nullptr) munmap(ring, kFileBytes);  // the parent's
  write_header(file);
  texts.begin_at(file + kNamesAt, HEADROOM_MARKS_NAMES_BYTES);
  next_record = 0;
  ring = file;
  return true;
}

// What was found while somebody else makes the ring.
bool wait_for_ring() {
  for (int i = 0; i < kWaits && now() == kMaking; ++i) {
    const timespec little{0, kWaitNs};
    nanosleep(&little, nullptr);
  }
  return now() == kOn;
}

}  // namespace

State look() {
  const int before = errno;
  const char* wanted = secure_getenv(HEADROOM_MARKS_VARIABLE);
  int expected = kUnknown;
  State found = kOff;
  if (wanted != nullptr && wanted[0] == '/' && strlen(wanted) < sizeof directory) found = kWanted;
  __atomic_compare_exchange_n(&state, &expected, static_cast<int>(found), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  errno = before;
  return now();
}

bool make_ring() {
  const int before = errno;
  if (now() == kUnknown) static_cast<void>(look());
  int expected = kWanted;
  bool made = false;
  if (__atomic_compare_exchange_n(&state, &expected, static_cast<int>(kMaking), false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    int cancel = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);  // a thread that ends in here would leave it half made
    static bool registered = false;
    const char* wanted = directory[0] == '\0' ? secure_getenv(HEADROOM_MARKS_VARIABLE) : nullptr;
    if (wanted != nullptr && strlen(wanted) < sizeof directory) memcpy(directory, wanted, strlen(wanted) + 1);
    if (!registered) registered = pthread_atfork(nullptr, nullptr, forget_in_child) == 0;
    made = registered && directory[0] == '/' && make_file();
    __atomic_store_n(&state, static_cast<int>(made ? kOn : kOff), __ATOMIC_RELEASE);
    pthread_setcancelstate(cancel, nullptr);
  } else {
    made = expected == kOn || (expected == kMaking && wait_for_ring());
  }
  errno = before;
  return made;
}

std::uint32_t number_of(const char* text, Text kind) {
  if (text == nullptr) return HEADROOM_NO_NAME;
  return texts.number_of(text, text_length(text), kind == Text::kName ? kShareOfNames : kShareOfValues);
}

std::uint32_t generation() { return forks; }

std::uint32_t thread() {
  if (of_thread.forks != forks + 1) of_thread = {static_cast<std::uint32_t>(syscall(SYS_gettid)), forks + 1};
  return of_thread.id;
}

void put(headroom_mark_kind kind, std::uint32_t name, double value, std::uint32_t thread) {
  const std::int64_t at = clock_ns(CLOCK_BOOTTIME);
  const std::uint64_t index = __atomic_fetch_add(&next_record, 1, __ATOMIC_RELAXED);
  auto* record = reinterpret_cast<headroom_mark*>(ring + kRecordsAt) + index % HEADROOM_MARKS_SLOTS;
  __atomic_store_n(&record->sequence, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  record->at = at;
  record->value = value;
  record->name = name;
  record->kind_and_thread = static_cast<std::uint32_t>(kind) << 24 | (thread & 0xffffffU);
  __atomic_store_n(&record->sequence, index + 1, __ATOMIC_RELEASE);
}

}  // namespace headroom::inject
