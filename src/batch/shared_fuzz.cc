// SPDX-License-Identifier: Apache-2.0
// What lies in a folder that several machines write, and what Slurm's programs print.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "batch/shared_work.h"
#include "batch/slurm_jobs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom::batch;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto piece = parse_piece(text))
    HR_CHECK(parse_piece(piece_line(*piece)) == piece, "what was read is written and read again");
  std::size_t elements = 0;
  for (const SlurmElement& element : parse_squeue(text)) elements += element.count;
  (void)slurm_words(parse_squeue(text));
  HR_CHECK(parse_records(text).size() <= size && submitted_id(text).value_or(0) >= INT64_MIN && elements_of(text) > 0,
           "every array has an element");
  (void)job_of_worker(text);
  (void)is_worker_name(text);
  return 0;
}
