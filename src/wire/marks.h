// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

// The marks of one process on their way to the recorder: a file of fixed size that the process maps and writes, and the
// recorder reads. Plain C, for libraries that are loaded into other people's programs; python/headroom/_ring.py has the
// same layout. Little endian. Nothing here ever waits: a process that marks faster than it is read writes over its
// oldest records, and a crash loses nothing that was written.
//
//   environment  HEADROOM_MARKS=DIRECTORY says that somebody records. The process makes its file there:
//                "<pid>-<16 random hex digits>.marks", O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, mode 0600, all of its
//                blocks allocated (posix_fallocate) before it is mapped: a full disk must not become a SIGBUS. What
//                cannot be had is done without, silently. A child after fork() makes a file of its own at its first
//                mark.
//   file         header | names | records
//   names        entries one after the other: uint16_t length, then the bytes (UTF-8, no zero at the end). The length
//   is
//                written after the bytes; 0: no more. An entry's number is its offset in this part. Used for names of
//                phases and metrics and for texts of parameters. Where there is no more room the number is
//                HEADROOM_NO_NAME.
//   records      a ring. Record i (from 0) is at slot i % slots. `sequence` is i + 1 and written last (release); while
//                the others are written it is 0.
// NOLINTBEGIN(readability-identifier-naming): the names of C.
#ifdef __cplusplus
extern "C" {
#endif

enum { HEADROOM_MARKS_VERSION = 1 };
#define HEADROOM_MARKS_MAGIC "HRMARKS" /* 8 bytes with its zero */
#define HEADROOM_MARKS_VARIABLE "HEADROOM_MARKS"
#define HEADROOM_NO_NAME UINT32_MAX

struct headroom_marks_header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // 4096
  uint32_t names_bytes;   // 65536
  uint32_t slots;         // 32768
  uint32_t record_bytes;  // 32
  int32_t pid;            // as the process itself knows it
  uint64_t start_ticks;   // field 22 of /proc/self/stat; 0: not known
  char via[8];            // "marks" or "nvtx"
};

struct headroom_mark {
  uint64_t sequence;
  int64_t at;                // CLOCK_BOOTTIME, ns
  double value;              // of a step: samples, 0 for not known; of a metric: its value
  uint32_t name;             // of a parameter: its name, and `value` is the number of its text
  uint32_t kind_and_thread;  // the kind (enum below) << 24 | the thread's id (gettid) & 0xffffff
};

enum headroom_mark_kind {
  HEADROOM_MARK_BEGIN = 1,
  HEADROOM_MARK_END = 2,
  HEADROOM_MARK_PHASE = 3,
  HEADROOM_MARK_STEP = 4,
  HEADROOM_MARK_METRIC = 5,
  HEADROOM_MARK_PARAMETER = 6,
};

enum { HEADROOM_MARKS_HEADER_BYTES = 4096, HEADROOM_MARKS_NAMES_BYTES = 65536, HEADROOM_MARKS_SLOTS = 32768 };

// NOLINTEND(readability-identifier-naming)
#ifdef __cplusplus
}
static_assert(sizeof(headroom_mark) == 32 && offsetof(headroom_mark, kind_and_thread) == 28);
static_assert(sizeof(headroom_marks_header) == 48 && offsetof(headroom_marks_header, via) == 40);
#endif
