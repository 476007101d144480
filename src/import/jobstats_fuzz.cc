// SPDX-License-Identifier: Apache-2.0
// Any bytes are rows whose times are within bounds, or an error that says something.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "import/jobstats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = headroom::ByteStream::of({reinterpret_cast<const char*>(data), size});
  const auto done = headroom::read_sacct("sacct", bytes, [](const headroom::SacctRow& row) {
    const headroom::AveragedJob& job = row.job;
    HR_CHECK((row.kind == headroom::SummaryKind::kUnreadable) == !row.problem.empty(), "a problem without words");
    if (row.kind != headroom::SummaryKind::kSummary) return;
    HR_CHECK(job.gpus > 0 && job.held == job.span * static_cast<headroom::Nanos>(job.gpus), "the time that was held");
    HR_CHECK(job.measured <= job.held && job.utilised >= 0 && job.utilised <= job.measured, "a mean beyond 1");
    HR_CHECK(job.zero >= 0 && job.zero <= job.measured - job.utilised, "time at 0 is without kernels");
  });
  HR_CHECK(done || !done.error().what.empty(), "an error without words");
  return 0;
}
