// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "batch/options.h"
#include "batch/request.h"
#include "device/nvml_reader.h"
#include "host/tree_reader.h"

namespace headroom::batch {

struct GpuChoice {
  std::vector<BatchGpu> gpus;
  std::unique_ptr<NvmlReader> reader;  // null: none is read
  PinBy pin = PinBy::kUuid;
  std::string driver_version;
  std::string note;  // what people must know, e.g. that there is no driver; "" for nothing
};
// Which GPUs tasks may use: those that --gpus names, of those that CUDA_VISIBLE_DEVICES shows.
[[nodiscard]] Result<GpuChoice> choose_gpus(const Request& request, host::TreeReader& tree);

}  // namespace headroom::batch
