// SPDX-License-Identifier: Apache-2.0
// The texts of one process. Whatever they hold, what is parsed stays inside the text and printable.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "host/connections.h"
#include "host/proc_parse.h"
#include "model/wait_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom::host;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto stat = parse_pid_stat(text)) {
    HR_CHECK(stat->comm.data() >= text.data() && stat->comm.data() + stat->comm.size() <= text.data() + text.size(),
             "the name is part of the text");
    (void)stat->kernel_thread();
  }
  const PidStatus status = parse_pid_status(text);
  (void)parse_numbers(status.ns_pids);
  (void)count_cpus(status.cpus_allowed_list);
  (void)parse_schedstat(text);
  (void)parse_pid_io(text);
  (void)parse_syscall(text);
  if (const auto line = parse_tcp_line(text))
    HR_CHECK(!to_text(line->connection.there).empty(), "an address that was read can be written");
  if (const auto target = headroom::wait_target_of(text))
    HR_CHECK(headroom::wait_target_of(headroom::to_text(*target)) == target, "a target is read as it was written");
  for (const char state : {'R', 'S'}) (void)parse_wchan(text, state);
  if (const auto value = find_environment(text, "CUDA_VISIBLE_DEVICES"))
    HR_CHECK(value->find('\0') == std::string_view::npos, "a variable ends where the text says");
  constexpr std::size_t kLimit = 64;
  const std::string line = command_line(text, kLimit);
  HR_CHECK(line.size() <= kLimit, "the command line is cut");
  HR_CHECK(valid_utf8(line) == line, "the command line is UTF-8");
  return 0;
}
