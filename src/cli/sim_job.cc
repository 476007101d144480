// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/own_files.h"
#include "cli/verbs.h"
#include "sim/job/job.h"

namespace headroom::cli {

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
