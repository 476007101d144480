// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/strings.h"
#include "model/slurm.h"

// Variables as "NAME=VALUE", one in a line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom;
  JobVariables variables;
  for (const std::string_view line : split({static_cast<const char*>(static_cast<const void*>(data)), size}, '\n'))
    if (const auto equals = line.find('='); equals != std::string_view::npos)
      variables.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  const auto job = slurm_job(variables);
  if (!job) return 0;
  HR_CHECK(job->job > 0 && job->array_job.has_value() == job->array_task.has_value(), "a job");
  HR_CHECK(!job->rank || job->step, "a rank is of a step");
  for (const char c : slurm_file_name(*job))
    HR_CHECK(is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.',
             "a name");
  HR_CHECK(slurm_file_name(*job).size() < 150, "a name");
  return 0;
}
