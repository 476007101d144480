// SPDX-License-Identifier: Apache-2.0
#include "batch/choose_gpus.h"

#include <algorithm>

#include "base/strings.h"
#include "model/visible.h"

namespace headroom::batch {

namespace {

constexpr std::string_view kAllGpus = "all";  // of those that the mask lets through

// Entries of --gpus: an index as nvidia-smi has it, or a UUID, which may be cut as long as it is unique.
Result<std::vector<std::size_t>> named_gpus(const std::string& list, const std::vector<Device>& devices) {
  std::vector<std::size_t> chosen;
  for (const auto entry : split(list, ',')) {
    const auto word = trim(entry);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto index = parse_number<int>(word);
      if (index ? devices[i].index == *index : !word.empty() && devices[i].uuid.starts_with(word)) found.push_back(i);
    }
    if (found.size() != 1)
      return fail(
          Errc::kInvalidInput,
          fmt::format("--gpus: {} '{}'", found.empty() ? "there is no GPU" : "more than one GPU is called", word),
          "headroom devices lists them");
    if (std::find(chosen.begin(), chosen.end(), found.front()) == chosen.end()) chosen.push_back(found.front());
  }
  return chosen;
}

// Places by name alone, one task on each. Nothing can be proven, and memory is not known.
GpuChoice named_places(const std::string& list, std::string note) {
  GpuChoice choice;
  for (const auto entry : split(list, ',')) {
    const std::string word(trim(entry));
    const auto index = parse_number<int>(std::string_view(word));
    choice.gpus.push_back(
        {.uuid = word, .model = "unknown", .index = index.value_or(static_cast<int>(choice.gpus.size()))});
  }
  choice.pin = PinBy::kUuid;  // the words as they were given
  choice.note = std::move(note);
  return choice;
}

bool all_mig(const std::string& list) {
  const auto entries = split(list, ',');
  return std::all_of(entries.begin(), entries.end(), [](auto entry) { return trim(entry).starts_with("MIG-"); });
}

// Where GPUs cannot be read, --gpus has to name entries of the mask around us as they stand there.
Result<void> check_within(const std::string& wanted, const std::optional<std::string>& mask) {
  if (!mask) return {};
  const auto entries = split(*mask, ',');
  for (const auto word : split(wanted, ','))
    if (std::none_of(entries.begin(), entries.end(), [&](auto entry) { return trim(entry) == trim(word); }))
      return fail(Errc::kInvalidInput, fmt::format("--gpus: '{}' is outside of CUDA_VISIBLE_DEVICES={}", word, *mask),
                  "unset it, or choose among its entries");
  return {};
}

Result<GpuChoice> unreadable_gpus(const Request& request, const Error& why) {
  GpuChoice choice;
  const auto mask = request.surroundings.variable("CUDA_VISIBLE_DEVICES");
  if (request.gpus == kAllGpus)
    return fail(Errc::kUnsupported, fmt::format("--gpus all: which there are cannot be read ({})", why.what),
                "name them, --gpus 0,1; or --gpus none: tasks run without");
  std::string list = request.gpus;
  if (list.empty() && mask && !trim(*mask).empty()) list = *mask;  // CUDA may work where NVML does not
  if (!list.empty()) {
    HR_TRYV(check_within(list, mask));
    return named_places(list, fmt::format("GPUs cannot be read ({}): tasks are placed on {} as told, one per GPU, "
                                          "without proof",
                                          why.what, list));
  }
  if (why.code != Errc::kNotFound) return tl::unexpected(why);
  choice.pin = PinBy::kNothing;
  choice.note = fmt::format("no GPUs here ({}): tasks run without", why.what);
  return choice;
}

// Slurm without device constraints puts its own numbers into the mask, which are nvidia-smi's and not CUDA's. (With
// constraints the mask counts from 0 what the job's cgroup lets through, and the driver shows nothing else.)
std::optional<std::string> order_of(const Surroundings& around, const std::string& mask) {
  for (const char* const name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"})
    if (around.variable(name) == mask) return "PCI_BUS_ID";
  return around.variable("CUDA_DEVICE_ORDER");
}

// Positions in `devices` that the mask around us lets tasks use.
Result<std::vector<std::size_t>> unmasked(const Surroundings& around, const std::vector<Device>& devices,
                                          GpuChoice& choice) {
  const auto mask = around.variable("CUDA_VISIBLE_DEVICES");
  const auto visible = visible_devices(devices, mask, order_of(around, mask.value_or("")));
  if (!mask || visible.stopped_at.empty()) {
    if (visible.ordinals.empty())
      choice.note = mask ? "CUDA_VISIBLE_DEVICES is empty: tasks run without a GPU" : "no GPUs here: tasks run without";
    return visible.ordinals;
  }
  if (visible.ordinals.empty())
    return fail(Errc::kInvalidInput,
                fmt::format("CUDA_VISIBLE_DEVICES={}: '{}' is no GPU here, or named twice, which hides all", *mask,
                            visible.stopped_at),
                "correct or unset it; headroom devices lists what is here; --gpus none runs tasks without GPUs");
  choice.note = fmt::format("CUDA_VISIBLE_DEVICES={}: '{}' is no GPU here, which hides it and what follows", *mask,
                            visible.stopped_at);
  return visible.ordinals;
}

}  // namespace

Result<GpuChoice> choose_gpus(const Request& request, host::TreeReader& tree) {
  GpuChoice choice;
  if (request.gpus == "none") {
    choice.pin = PinBy::kNothing;
    return choice;
  }
  const auto mask = request.surroundings.variable("CUDA_VISIBLE_DEVICES");
  const std::string list = request.gpus.empty() || request.gpus == kAllGpus ? mask.value_or("") : request.gpus;
  if (all_mig(list)) {
    HR_TRYV(check_within(list, mask));
    return named_places(list, fmt::format("tasks are placed on {} by name, one per MIG instance, without proof", list));
  }
  NvmlReaderOptions options;
  options.path = request.surroundings.nvml_library;
  options.describe = [&tree](std::int64_t pid) { return tree.describe(pid); };
  auto reader = NvmlReader::open(std::move(options));
  if (!reader) return unreadable_gpus(request, reader.error());
  const auto& devices = (*reader)->devices();
  HR_TRY(std::vector<std::size_t> chosen, unmasked(request.surroundings, devices, choice));
  if (request.gpus == kAllGpus && devices.empty()) return fail(Errc::kNotFound, "--gpus all: there are no GPUs here");
  if (!request.gpus.empty() && request.gpus != kAllGpus) {
    const std::vector<std::size_t> allowed = std::move(chosen);
    HR_TRY(chosen, named_gpus(request.gpus, devices));
    for (const std::size_t i : chosen)
      if (std::find(allowed.begin(), allowed.end(), i) == allowed.end())
        return fail(
            Errc::kInvalidInput,
            fmt::format("--gpus: GPU {} is outside of CUDA_VISIBLE_DEVICES={}", devices[i].index, mask.value_or("")),
            "unset it, or choose among the GPUs that it shows");
  }
  choice.pin = request.pin == "index" ? PinBy::kIndex : PinBy::kUuid;
  for (const std::size_t i : chosen) {
    if (choice.pin == PinBy::kIndex && devices[i].index != static_cast<int>(i))
      return fail(Errc::kInvalidInput,
                  fmt::format("--pin index: a GPU before GPU {} cannot be used, so CUDA numbers them otherwise",
                              devices[i].index),
                  "use --pin uuid");
    choice.gpus.push_back({.uuid = devices[i].uuid,
                           .model = devices[i].name,
                           .index = devices[i].index,
                           .memory_bytes = devices[i].memory_total_bytes.value_or(0)});
  }
  choice.driver_version = (*reader)->driver_version();
  if (choice.gpus.empty()) choice.pin = PinBy::kNothing;
  choice.reader = std::move(*reader);
  return choice;
}

}  // namespace headroom::batch
