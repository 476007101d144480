// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_setup.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/duration.h"
#include "base/filesystem.h"
#include "base/fnv.h"
#include "base/strings.h"
#include "batch/control.h"
#include "batch/identity.h"
#include "cli/environment.h"
#include "model/visible.h"
#include "tasks/task_file.h"
#include "tasks/template.h"
#include "tasks/template_pinning.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

constexpr Nanos kGuardianPatience = 60 * kSecond;

Result<std::string> read_standard_input() {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got < 0) return tl::unexpected(errno_error("read standard input"));
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<tasks::ListOptions> list_options(const BatchCommand& command) {
  tasks::ListOptions options;
  options.command = command.command;
  options.shell = command.shell;
  constexpr std::size_t kLargest = std::size_t{256} << 20;  // of a task file, or what it names
  options.read = [](const std::string& path) { return read_file(path, kLargest); };
  if (!command.timeout.empty()) {
    HR_TRY(options.defaults.timeout, parse_duration(command.timeout));
  }
  if (command.retries >= 0) options.defaults.retry.retries = command.retries;
  return options;
}

Result<tasks::TaskSet> tasks_of(const BatchCommand& command, const std::vector<std::string>& after_dashes) {
  HR_TRY(tasks::ListOptions options, list_options(command));
  if (!after_dashes.empty()) {
    if (!command.words.empty())
      return fail(Errc::kInvalidInput, "batch: either a task file or a command after --, not both");
    options.file = "command line";
    return tasks::tasks_from_arguments(after_dashes, options);
  }
  if (command.words.empty())
    return fail(Errc::kInvalidInput, "batch: no tasks given",
                "headroom batch TASKS.toml, headroom batch - < commands.txt, or headroom batch -- CMD {} ::: A B C");
  if (command.words.size() > 1)
    return fail(Errc::kInvalidInput, fmt::format("batch: '{}' is one too many", command.words[1]),
                "one task file; a command with ::: goes after --");
  if (command.words[0] == "-") {
    options.file = "standard input";
    HR_TRY(const std::string text, read_standard_input());
    return tasks::tasks_from_lines(text, options);
  }
  return tasks::read_task_file(command.words[0], options);
}

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
  choice.pin = batch::PinBy::kUuid;  // the words as they were given
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

Result<GpuChoice> unreadable_gpus(const BatchCommand& command, const Error& why) {
  GpuChoice choice;
  const auto mask = environment("CUDA_VISIBLE_DEVICES");
  std::string list = command.gpus;
  if (list.empty() && mask && !trim(*mask).empty()) list = *mask;  // CUDA may work where NVML does not
  if (!list.empty()) {
    HR_TRYV(check_within(list, mask));
    return named_places(list, fmt::format("GPUs cannot be read ({}): tasks are placed on {} as told, one per GPU, "
                                          "without proof",
                                          why.what, list));
  }
  if (why.code != Errc::kNotFound) return tl::unexpected(why);
  choice.pin = batch::PinBy::kNothing;
  choice.note = fmt::format("no GPUs here ({}): tasks run without", why.what);
  return choice;
}

// Slurm without device constraints puts its own numbers into the mask, which are nvidia-smi's and not CUDA's. (With
// constraints the mask counts from 0 what the job's cgroup lets through, and the driver shows nothing else.)
std::optional<std::string> order_of(const std::string& mask) {
  for (const char* const name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"})
    if (environment(name) == mask) return "PCI_BUS_ID";
  return environment("CUDA_DEVICE_ORDER");
}

// Positions in `devices` that the mask around us lets tasks use.
Result<std::vector<std::size_t>> unmasked(const std::vector<Device>& devices, GpuChoice& choice) {
  const auto mask = environment("CUDA_VISIBLE_DEVICES");
  const auto visible = visible_devices(devices, mask, order_of(mask.value_or("")));
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

Result<tasks::TaskSet> read_tasks(const BatchCommand& command, const std::vector<std::string>& after_dashes) {
  HR_TRY(tasks::TaskSet set, tasks_of(command, after_dashes));
  if (set.tasks.empty()) return fail(Errc::kInvalidInput, "batch: there are no tasks");
  const bool none = command.gpus == "none";
  const auto policy = command.second_pin == "rewrite" ? tasks::PinPolicy::kRewrite
                      : command.second_pin == "allow" ? tasks::PinPolicy::kAllow
                                                      : tasks::PinPolicy::kRefuse;
  for (TaskSpec& task : set.tasks) {
    if (!none) HR_TRYV(tasks::settle_second_pins(task, policy));
  }
  if (none) HR_TRYV(leave_gpus_alone(set.tasks, "--gpus none"));
  for (const auto& text : command.metrics) {
    HR_TRY(auto pattern, output::parse_log_option(output::LogPattern::Kind::kMetric, text));
    set.patterns.push_back(std::move(pattern));
  }
  for (const auto& text : command.parameters) {
    HR_TRY(auto pattern, output::parse_log_option(output::LogPattern::Kind::kParameter, text));
    set.patterns.push_back(std::move(pattern));
  }
  batch::InputHasher hasher;
  HR_TRYV(batch::set_identities(set.tasks, current_directory(), hasher));
  return set;
}

std::string folder_of(const BatchCommand& command, const tasks::TaskSet& set) {
  std::error_code ignored;
  if (!command.folder.empty()) return fs::absolute(command.folder, ignored).lexically_normal().string();
  if (!command.words.empty() && command.words[0] != "-")
    return fs::absolute(command.words[0], ignored).replace_extension(".batch").lexically_normal().string();
  std::uint64_t hash = kFnvBasis;  // the same tasks find their journal again
  for (const TaskSpec& task : set.tasks) hash = fnv1a(task.identity, hash);
  return fmt::format("{}/headroom-{:08x}.batch", current_directory(), hash >> 32);
}

Result<Fd> take_folder(const std::string& folder, bool fresh) {
  std::error_code error;
  if (fresh && fs::exists(batch::journal_path(folder), error)) {
    HR_TRY(const Fd lock, batch::lock_folder(folder));  // not from under a running batch
    std::string aside;
    for (int i = 1; aside.empty() || fs::exists(aside, error); ++i) aside = fmt::format("{}.old{}", folder, i);
    fs::rename(folder, aside, error);
    if (error) return fail(Errc::kIo, fmt::format("--fresh: cannot move {} aside: {}", folder, error.message()));
    say(fmt::format("the batch that was here is kept in {}", aside), "");
  }
  fs::create_directories(folder + "/logs", error);
  if (error)
    return fail(Errc::kNoPermission, fmt::format("make the folder {}: {}", folder, error.message()),
                "--folder chooses another place");
  auto lock = batch::lock_folder(folder);
  if (lock || lock.error().code != Errc::kBusy) return lock;
  if (batch::ask(folder, "ping"))
    return fail(Errc::kBusy, fmt::format("another batch runs in {}", folder),
                "headroom batch status shows it; --folder runs a second one elsewhere");
  say("the batch that died here is still being stopped; waiting for it", "");
  for (const Nanos until = boottime_now() + kGuardianPatience; !lock && boottime_now() < until;) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
    ::nanosleep(&pause, nullptr);
    lock = batch::lock_folder(folder);
  }
  return lock;
}

Result<void> leave_gpus_alone(std::vector<TaskSpec>& tasks, const std::string& why) {
  for (TaskSpec& task : tasks) {
    task.resources.gpus = 0;
    std::vector<std::string> texts = task.argv;
    for (const auto& [name, value] : task.environment) texts.push_back(value);
    if (std::none_of(texts.begin(), texts.end(), tasks::uses_gpu)) continue;
    const std::string place = task.line > 0 ? fmt::format("{}:{}: ", task.file, task.line) : "";
    return fail(Errc::kInvalidInput, fmt::format("{}task {} names its GPU, and gets none: {}", place, task.name, why),
                "remove {gpu}, {gpu_index} and {gpu_uuid}; {slot} is known without GPUs, too");
  }
  return {};
}

Result<GpuChoice> choose_gpus(const BatchCommand& command, host::TreeReader& tree) {
  GpuChoice choice;
  if (command.gpus == "none") {
    choice.pin = batch::PinBy::kNothing;
    return choice;
  }
  const auto mask = environment("CUDA_VISIBLE_DEVICES");
  const std::string list = command.gpus.empty() ? mask.value_or("") : command.gpus;
  if (all_mig(list)) {
    HR_TRYV(check_within(list, mask));
    return named_places(list, fmt::format("tasks are placed on {} by name, one per MIG instance, without proof", list));
  }
  NvmlReaderOptions options;
  options.path = nvml_library();
  options.describe = [&tree](std::int64_t pid) { return tree.describe(pid); };
  auto reader = NvmlReader::open(std::move(options));
  if (!reader) return unreadable_gpus(command, reader.error());
  const auto& devices = (*reader)->devices();
  HR_TRY(std::vector<std::size_t> chosen, unmasked(devices, choice));
  if (!command.gpus.empty()) {
    const std::vector<std::size_t> allowed = std::move(chosen);
    HR_TRY(chosen, named_gpus(command.gpus, devices));
    for (const std::size_t i : chosen)
      if (std::find(allowed.begin(), allowed.end(), i) == allowed.end())
        return fail(
            Errc::kInvalidInput,
            fmt::format("--gpus: GPU {} is outside of CUDA_VISIBLE_DEVICES={}", devices[i].index, mask.value_or("")),
            "unset it, or choose among the GPUs that it shows");
  }
  choice.pin = command.pin == "index" ? batch::PinBy::kIndex : batch::PinBy::kUuid;
  for (const std::size_t i : chosen) {
    if (choice.pin == batch::PinBy::kIndex && devices[i].index != static_cast<int>(i))
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
  if (choice.gpus.empty()) choice.pin = batch::PinBy::kNothing;
  choice.reader = std::move(*reader);
  return choice;
}

}  // namespace headroom::cli
