// SPDX-License-Identifier: Apache-2.0
// A job's process tree, for measuring what watching it costs:
//   bench_tree PROCESSES AWAKE [GPUS HEADROOM]
// PROCESSES in all, this one included. GPUS of them are virtual jobs (`HEADROOM sim-job`) that launch ten kernels a
// second on a device each; AWAKE others wake ten times a second, as workers behind a queue do; the rest sleep. Runs
// until it is told to end; nothing outlives it.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

[[noreturn]] void sleep_for_ever() {
  for (;;) ::pause();
}

[[noreturn]] void wake_ten_times_a_second() {
  for (volatile int work = 0;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (int i = 0; i < 10'000; ++i) work = work + i;
  }
}

[[noreturn]] void become_virtual_job(const char* headroom, int device) {
  const std::string ordinal = std::to_string(device);
  ::execl(headroom, headroom, "sim-job", "--quiet", "--epochs", "1000000", "--step-gpu-ms", "60", "--host-sleep-ms",
          "40", "--host-ms", "0", "--no-burn", "--device", ordinal.c_str(), nullptr);
  std::perror(headroom);
  ::_exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) {
    std::fputs("usage: bench_tree PROCESSES AWAKE [GPUS HEADROOM]\n", stderr);
    return 2;
  }
  const int processes = std::atoi(argv[1]), awake = std::atoi(argv[2]);
  const int gpus = argc == 5 ? std::atoi(argv[3]) : 0;
  if (processes == 1 && gpus > 0) become_virtual_job(argv[4], 0);
  for (int i = 0; i < processes - 1; ++i) {
    const pid_t child = ::fork();
    if (child < 0) {
      std::perror("fork");
      return 1;
    }
    if (child > 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (i < gpus) become_virtual_job(argv[4], i);
    if (i < gpus + awake) wake_ten_times_a_second();
    sleep_for_ever();
  }
  sleep_for_ever();
}
