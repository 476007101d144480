// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "import/byte_stream.h"
#include "model/fleet.h"

namespace headroom {

// What a row of sacct turns out to be. Steps of jobs are none.
enum class SummaryKind : std::uint8_t { kSummary, kWithoutGpus, kTooShort, kNoSummary, kUnreadable };

struct SacctRow {
  SummaryKind kind = SummaryKind::kNoSummary;
  AveragedJob job;      // of a summary
  std::string problem;  // kUnreadable: "FILE:12: why"
};

// The command that prints what read_sacct() reads.
inline constexpr const char* kSacctCommand =
    "sacct -a -X -P -S now-30days -o jobid,user,account,jobname,elapsedraw,alloctres,nodelist,admincomment";

// Reads what `sacct -P -o …,admincomment` prints, row by row: a line with the names of the columns, then one for each
// job, fields separated by "|". Jobstats keeps a job's averages in AdminComment: "JS1:" and the base64 of gzipped JSON.
// kInvalidInput where the first line names no such column. Rows of any number take the memory of one.
[[nodiscard]] Result<void> read_sacct(const std::string& name, ByteStream& bytes,
                                      const std::function<void(const SacctRow&)>& take);

}  // namespace headroom
