// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "live/job.h"
#include "sim/box/janitor.h"
#include "sim/box/script.h"
#include "sim/job/job.h"

namespace headroom::cli {

namespace {

struct SimOptions {
  std::string gpus = "2xA6000";
  std::string describe, faults;
  std::string schedule = "time-slice";
  std::string processes = "all";
  bool wsl2 = false;
  double quantum_ms = 2;
  bool list = false;
};

int list_presets() {
  print("{:<10}{:<38}{:>10}{:>8}{:>6}  {}\n", "name", "shows as", "memory", "limit", "SMs", "notes");
  for (const sim::Preset& preset : sim::presets()) {
    const sim::DeviceInfo& info = preset.info;
    print("{:<10}{:<38}{:>6} MiB{:>6} W{:>6}  {}\n", preset.name, info.name, info.memory_total_bytes >> 20,
          info.power_limit_mw / 1000, info.sm_count, info.has_gpm != 0 ? "GPM" : "");
  }
  print("\nheadroom sim --gpus 2xA6000,1xRTX4050 -- CMD; docs/sim.md says how to describe others\n");
  return kExitOk;
}

Result<sim::BoxOptions> box_options(const SimOptions& options) {
  sim::BoxOptions box;
  if (options.describe.empty()) {
    HR_TRY(box.plan, sim::plan_of_names(options.gpus));
  } else {
    HR_TRY(const std::string text, read_file(options.describe, 1 << 20));
    HR_TRY(box.plan, sim::plan_of_toml(text, options.describe));
  }
  if (!options.faults.empty()) {
    HR_TRY(const std::string text, read_file(options.faults, 1 << 20));
    HR_TRY(box.faults, sim::parse_faults(text, options.faults, box.plan));
  }
  box.schedule = options.schedule == "mps"                 ? contention::Schedule::kSpaceSharing
                 : options.schedule == "processor-sharing" ? contention::Schedule::kProcessorSharing
                                                           : contention::Schedule::kRoundRobin;
  box.process_list = options.wsl2 || options.processes == "unsupported" ? sim::ProcessList::kUnsupported
                     : options.processes == "none"                      ? sim::ProcessList::kNone
                     : options.processes == "host-pids"                 ? sim::ProcessList::kHostPids
                                                                        : sim::ProcessList::kAll;
  if (options.wsl2) std::for_each(box.plan.devices.begin(), box.plan.devices.end(), sim::as_under_wsl2);
  box.quantum = static_cast<Nanos>(options.quantum_ms * 1e6);
  return box;
}

// The command that makes such a box, as a shell takes it: the recorder keeps it, so that a run can be repeated.
std::string command_of_box(const SimOptions& options) {
  const SimOptions usual;
  std::vector<std::string> words{"headroom", "sim"};
  const auto add = [&](const char* name, const std::string& value) { words.insert(words.end(), {name, value}); };
  const auto add_file = [&](const char* name, const std::string& path) {
    if (!path.empty()) add(name, std::filesystem::absolute(path).lexically_normal().string());
  };
  if (options.describe.empty()) add("--gpus", options.gpus);
  add_file("--describe", options.describe);
  add_file("--faults", options.faults);
  if (options.schedule != usual.schedule) add("--schedule", options.schedule);
  if (options.processes != usual.processes) add("--processes", options.processes);
  if (options.quantum_ms != usual.quantum_ms) add("--quantum-ms", fmt::format("{}", options.quantum_ms));
  if (options.wsl2) words.emplace_back("--wsl2");
  return typed_line(words);
}

// Runs the command inside the box, in the foreground of the terminal; returns its exit code.
Result<int> run_inside(const sim::Box& box, const std::string& command, const std::vector<std::string>& argv) {
  HR_TRY(Signals signals, Signals::block(ForegroundJob::kSignals));
  HR_TRY(const std::unique_ptr<Loop> loop, Loop::create());
  HR_TRY(sim::Janitor janitor, sim::Janitor::start(box));
  HR_TRYV(loop->watch(janitor.fd(), [&] { janitor.tidy(); }));
  std::vector<std::string> variables = box.environment();
  variables.push_back("HEADROOM_SIM_COMMAND=" + command);
  auto child = Child::spawn(
      {.argv = argv, .set_env = std::move(variables), .signal_mask = signals.mask_before(), .on_drop = OnDrop::kLeave});
  if (!child) {
    report_error(child.error());
    return child.error().code == Errc::kNotFound ? kExitNotFound : kExitNotExecutable;
  }
  int code = kExitFailed;
  HR_TRY(const auto job, ForegroundJob::follow(*loop, signals, std::move(*child),
                                               {.on_end =
                                                    [&](const JobEnd& end) {
                                                      code = end.status.as_code();
                                                      loop->stop();
                                                    },
                                                .on_stopped = [](Nanos, Nanos, int) {},
                                                .on_reaped = [](pid_t, ExitStatus) {}}));
  loop->run();
  return code;
}

int run_verb(const SimOptions& options, const std::vector<std::string>& argv) {
  if (options.list) return list_presets();
  if (argv.empty())
    return report_error({.code = Errc::kInvalidInput,
                         .what = "sim: no command given",
                         .hint = "headroom sim --gpus 2xA6000 -- CMD..., or headroom sim --list"});
  const auto plan = box_options(options);
  if (!plan) return report_error(plan.error());
  sim::sweep_stale_boxes();
  const auto box = sim::Box::create(*plan);
  if (!box) return report_error(box.error());
  const auto code = run_inside(*box, command_of_box(options), argv);
  return code ? *code : report_error(code.error());
}

}  // namespace

Action declare_sim(VerbInput input) {
  auto options = std::make_shared<SimOptions>();
  CLI::App& app = input.app;
  auto* gpus = app.add_option("--gpus", options->gpus, "which virtual GPUs, e.g. 2xA6000,1xRTX4050")->type_name("LIST");
  app.add_option("--describe", options->describe, "GPUs from a TOML description instead")
      ->type_name("FILE")
      ->excludes(gpus);
  app.add_option("--faults", options->faults, "a fault script in TOML")->type_name("FILE");
  app.add_option("--schedule", options->schedule, "how processes share a GPU: time-slice, processor-sharing or mps")
      ->check(CLI::IsMember({"time-slice", "processor-sharing", "mps"}));
  app.add_option("--quantum-ms", options->quantum_ms, "time slice, in milliseconds")
      ->type_name("NUMBER")
      ->check(CLI::Range(0.01, 1000.0));
  auto* processes =
      app.add_option(
             "--processes", options->processes,
             "which processes the driver lists: all, none, host-pids (numbers that mean nothing here) or unsupported")
          ->check(CLI::IsMember({"all", "none", "host-pids", "unsupported"}));
  app.add_flag("--wsl2", options->wsl2, "as under WSL2: no process list, energy counter, ECC, fans or GPM")
      ->excludes(processes);
  app.add_flag("--list", options->list, "show the presets and stop");
  app.footer(
      "CMD and all it starts see the virtual GPUs through NVML, `import headroom_sim` in Python, and\n"
      "libheadroom_sim.so; its exit code is returned. Kernels and memory are simulated, host work is real.\n"
      "PyTorch and other CUDA programs see none of these GPUs: there is no CUDA behind them.");
  return [options, &argv = input.after_dashes] { return run_verb(*options, argv); };
}

namespace {

void declare_work(CLI::App& app, sim::JobOptions& o) {
  app.add_option("--epochs", o.epochs, "epochs")->group("Work");
  app.add_option("--steps", o.steps, "steps per epoch")->group("Work");
  app.add_option("--step-gpu-ms", o.step_gpu_ms, "kernel time of a step, alone on the device")->group("Work");
  app.add_option("--sm", o.sm, "share of the SMs that its kernels use")->check(CLI::Range(0.001, 1.0))->group("Work");
  app.add_option("--in-flight", o.in_flight, "steps queued before it waits; 1: waits after each")->group("Work");
  app.add_option("--host-ms", o.host_ms, "CPU time of a step")->group("Work");
  app.add_option("--host-sleep-ms", o.host_sleep_ms, "idle host time of a step")->group("Work");
  app.add_option("--copy-mib", o.copy_mib, "copied to the device per step")->group("Work");
  app.add_flag("--pinned", o.pinned, "copies from pinned memory, asynchronously")->group("Work");
  app.add_option("--batch", o.batch, "samples per step; see the two below")->group("Work");
  app.add_option("--gpu-ms-per-sample", o.gpu_ms_per_sample, "kernel time per sample, added")->group("Work");
  app.add_option("--mib-per-sample", o.mib_per_sample, "device memory per sample, added")->group("Work");
  app.add_option("--memory-mib", o.memory_mib, "device memory, beside the context's own")->group("Work");
  app.add_option("--memory-growth-mib", o.memory_growth_mib, "more of it per epoch")->group("Work");
  app.add_option("--device", o.device, "CUDA ordinal")->group("Work");
  app.add_flag("--no-gpu", o.no_gpu, "never touch the GPU; steps cost host time")->group("Work");
}

void declare_phases(CLI::App& app, sim::JobOptions& o) {
  app.add_option("--startup-s", o.startup_s, "CPU seconds before the context")->group("Phases");
  app.add_option("--startup-sleep-s", o.startup_sleep_s, "idle seconds before the context")->group("Phases");
  app.add_option("--graph-s", o.graph_s, "CPU seconds of graph building per epoch")->group("Phases");
  app.add_option("--validation-s", o.validation_s, "seconds of validation per epoch")->group("Phases");
  app.add_option("--validation-gpu", o.validation_gpu, "share of them with kernels")
      ->check(CLI::Range(0.0, 1.0))
      ->group("Phases");
  app.add_option("--checkpoint-mib", o.checkpoint_mib, "written and synced per epoch")->group("Phases");
  app.add_option("--checkpoint-dir", o.checkpoint_dir, "where; default TMPDIR")->type_name("DIR")->group("Phases");
  app.add_option("--hold-s", o.hold_s, "seconds with an idle context at the end")->group("Phases");
  app.add_option("--loader-workers", o.loader_workers, "processes that make batches")
      ->check(CLI::Range(0, 256))
      ->group("Phases");
  app.add_option("--loader-ms", o.loader_ms, "CPU time per batch")->group("Phases");
  app.add_option("--loader-sleep-ms", o.loader_sleep_ms, "idle time per batch (slow storage)")->group("Phases");
  app.add_option("--loader-startup-ms", o.loader_startup_ms, "CPU time until a worker is ready")->group("Phases");
  app.add_flag("--loader-restart", o.loader_restart, "new workers every epoch")->group("Phases");
  app.add_flag("--no-burn", o.no_burn, "host work sleeps instead of using CPU")->group("Phases");
}

void declare_trouble(CLI::App& app, sim::JobOptions& o) {
  app.add_option("--fail-at-step", o.fail_at_step, "fail there (counted over all epochs, from 1)")->group("Trouble");
  app.add_option("--exit-code", o.exit_code, "with this code")->check(CLI::Range(0, 255))->group("Trouble");
  app.add_option("--oom-at-step", o.oom_at_step, "allocate there until it fails")->group("Trouble");
  app.add_option("--set-visible-late", o.set_visible_late, "set CUDA_VISIBLE_DEVICES after the context exists")
      ->type_name("LIST")
      ->group("Trouble");
  app.add_option("--jitter", o.jitter, "relative standard deviation of a step")
      ->check(CLI::Range(0.0, 1.0))
      ->group("Trouble");
  app.add_option("--seed", o.seed, "of the jitter")->group("Trouble");
  app.add_option("--report", o.report, "write its own truth as JSON ('-': stdout)")->type_name("FILE");
  declare_force(app, o.force);
  app.add_flag("-q,--quiet", o.quiet, "no line per epoch");
}

}  // namespace

Action declare_sim_job(VerbInput input) {
  auto options = std::make_shared<sim::JobOptions>();
  declare_work(input.app, *options);
  declare_phases(input.app, *options);
  declare_trouble(input.app, *options);
  input.app.footer(
      "Kernels, copies and device memory are virtual; CPU, processes, pipes and files are real. It ends with 1 if the\n"
      "virtual GPU fails it (out of memory, lost), as a training program would.");
  return [options] {
    const auto code = sim::run_job(*options);
    return code ? *code : report_error(code.error());
  };
}

}  // namespace headroom::cli
