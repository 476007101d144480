// SPDX-License-Identifier: Apache-2.0
// The physical limit of a launcher: posix_spawn and wait, nothing else. bench_spawn COUNT SLOTS COMMAND [ARGUMENT...]
// prints wall and CPU seconds, its own and its children's.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "base/time.h"

namespace {
double seconds_of(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_spawn COUNT SLOTS COMMAND [ARGUMENT...]\n");
    return 2;
  }
  const int count = std::atoi(argv[1]), slots = std::atoi(argv[2]);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  const headroom::Nanos begin = headroom::boottime_now();
  int started = 0, running = 0, failed = 0;
  while (started < count || running > 0) {
    if (started < count && running < slots) {
      pid_t pid = 0;
      if (posix_spawn(&pid, argv[3], &files, nullptr, argv + 3, environ) != 0) return 1;
      ++started, ++running;
      continue;
    }
    int status = 0;
    if (wait(&status) > 0) --running, failed += status != 0 ? 1 : 0;
  }
  rusage self{}, children{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  std::printf("%.6f %.6f %.6f\n", headroom::seconds(headroom::boottime_now() - begin), seconds_of(self),
              seconds_of(children));
  return failed == 0 ? 0 : 1;
}
