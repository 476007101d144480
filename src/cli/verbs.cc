// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <algorithm>
#include <array>

#include "cli/declared_verb.h"

namespace headroom::cli {

namespace {

// Add a verb: its file, verbs.h, and a row here. Help, manual and completions are written from these rows and from the
// options that the verb declares.
constexpr std::array kVerbs{
    Verb{.name = "run",
         .summary = "record a command and explain where its GPU time went",
         .declare = declare_run,
         .usage = "[OPTIONS] [--] CMD...",
         .examples = "run python3 train.py --epochs 3\n"
                     "run -i 200ms -o run.hrec -- python3 train.py\n"
                     "run --json=report.json -- torchrun --nproc-per-node 2 train.py",
         .takes_command = true},
    Verb{.name = "record",
         .summary = "record what is already running",
         .declare = declare_record,
         .usage = "[OPTIONS]",
         .examples = "record --pid 4711\n"
                     "record --duration 10m -o box.hrec"},
    Verb{.name = "batch",
         .summary = "run many tasks over all GPUs, packed, with a journal; resumable",
         .declare = declare_batch,
         .usage = "[OPTIONS] TASKS\n"
                  "[OPTIONS] -- CMD {} ::: A B C\n"
                  "COMMAND [OPTIONS] ...",
         .examples = "batch windows.toml\n"
                     "batch - < commands.txt\n"
                     "batch -- python3 train.py --seed {} ::: 1 2 3\n"
                     "batch show --failed",
         .command_after_dashes = true},
    Verb{.name = "ab",
         .summary = "compare two commands, by runs in turn on the same GPU; resumable",
         .declare = declare_ab,
         .usage = "[OPTIONS] -- CMD_A --- CMD_B",
         .examples = "ab -- python3 train.py --- python3 train.py --compile\n"
                     "ab --until 5% --warm-up -- ./train base.yaml --- ./train new.yaml\n"
                     "ab --output model.txt -- python3 fit.py --- python3 fit.py --bins 63",
         .command_after_dashes = true},
    Verb{.name = "probe",
         .summary = "try values of a parameter in short runs in turn: which is the fastest, and is that real",
         .declare = declare_probe,
         .usage = "[OPTIONS] --vary NAME=V,V,... -- CMD {NAME}",
         .examples = "probe --vary num_workers=0,2,4 -- python3 train.py --workers {num_workers}\n"
                     "probe --vary batch_size=32,64 --larger 128,256 -- python3 train.py -b {batch_size}\n"
                     "probe --vary lr=0.1,0.2 --for 30s --rounds 5 -- ./train --lr {lr}",
         .command_after_dashes = true},
    Verb{.name = "why",
         .summary = "say where a recording's GPU time went, and why; or that of a process that runs",
         .declare = declare_why,
         .usage = "[OPTIONS] [RECORDING...]\n"
                  "[OPTIONS] --pid PID",
         .examples = "why\n"
                     "why --pid 4711\n"
                     "why rec/\n"
                     "why last~1\n"
                     "why gpu_stats.csv --json"},
    Verb{.name = "top",
         .summary = "watch what the GPUs do and what they wait for, live or in a recording",
         .declare = declare_top,
         .usage = "[OPTIONS] [RECORDING...]",
         .examples = "top\n"
                     "top last~1 --at 10m\n"
                     "top --once --json"},
    Verb{.name = "plan",
         .summary = "say what to change, what that can gain, how to check and undo it",
         .declare = declare_plan,
         .usage = "[OPTIONS] [RECORDING]",
         .examples = "plan\n"
                     "plan last --left 70h -o plan.json\n"
                     "plan last --trials 20 --epochs 10 --epoch 7m\n"
                     "plan gpu_stats.csv --batch 32:128\n"
                     "plan --history"},
    Verb{.name = "compare",
         .summary = "say whether two runs may be compared, and if so by how much they differ",
         .declare = declare_compare,
         .usage = "[OPTIONS] A B",
         .examples = "compare last~1 last\n"
                     "compare base.batch bigger.batch --changed batch_size\n"
                     "compare a1,a2,a3 b1,b2,b3 --artefacts out_a out_b\n"
                     "compare before.db after.db"},
    Verb{.name = "verify",
         .summary = "say whether a change delivered what a plan predicted; keeps the score of predictions",
         .declare = declare_verify,
         .usage = "[OPTIONS] PLAN RECORDING\n"
                  "[OPTIONS] PLAN STORAGE [RECORDING]\n"
                  "--history [OPTIONS]",
         .examples = "verify plan.json last\n"
                     "verify plan.json last --applied more_loader_workers\n"
                     "verify plan.json new.db --applied \"warm workers\"\n"
                     "verify --history"},
    Verb{.name = "report",
         .summary = "write all that is known of a recording, or of two, as one HTML or Markdown file, to hand on",
         .declare = declare_report,
         .usage = "[OPTIONS] [RECORDING|DIR]\n"
                  "[OPTIONS] A B\n"
                  "[OPTIONS] A B C...",
         .examples = "report\n"
                     "report last -o run.html\n"
                     "report last -o run.md\n"
                     "report last --from 10m --to 25m\n"
                     "report last~1 last -o compared.html\n"
                     "report optuna.db"},
    Verb{.name = "serve",
         .summary = "show recordings, batches and studies in a browser, live; metrics for Prometheus",
         .declare = declare_serve,
         .usage = "[OPTIONS] [WHAT...]",
         .examples = "serve --open\n"
                     "serve windows.batch optuna.db\n"
                     "serve --port 0 --metrics-token-file scrape.token"},
    Verb{.name = "stacks",
         .summary = "show the Python stacks of the time in which the GPUs were idle, or of a process as it runs",
         .declare = declare_stacks,
         .usage = "[OPTIONS] [RECORDING]",
         .examples = "stacks\n"
                     "stacks --pid 4711\n"
                     "stacks last -f svg -o idle.svg\n"
                     "stacks --all -f speedscope -o run.speedscope.json"},
    Verb{.name = "devices",
         .summary = "show the GPUs of this machine and who uses them",
         .declare = declare_devices,
         .usage = "[OPTIONS]",
         .examples = "devices\n"
                     "devices --json"},
    Verb{.name = "study",
         .summary =
             "explain a hyper-parameter study of Optuna: where its time went, what would find its best value sooner",
         .declare = declare_study,
         .usage = "[OPTIONS] STORAGE [RECORDING]",
         .examples = "study optuna.db\n"
                     "study sqlite:///optuna.db last --pruner \"HyperbandPruner(1, 100, 3)\"\n"
                     "study optuna.db --watch\n"
                     "study postgresql://user@host/optuna --study resnet"},
    Verb{.name = "fleet",
         .summary = "say who held GPUs, where that time went and what of it could come back, over many recordings",
         .declare = declare_fleet,
         .usage = "[OPTIONS] [DIR|FILE]...",
         .examples = "fleet /scratch/headroom\n"
                     "fleet /scratch/headroom --by project --since 30d\n"
                     "fleet a.hrec b.hrec sweep.batch --full\n"
                     "fleet --sacct jobs.txt --by project"},
    Verb{.name = "recordings",
         .summary = "list, prune or remove what has been recorded",
         .declare = declare_recordings,
         .usage = "[OPTIONS]\n"
                  "COMMAND [OPTIONS] ...",
         .examples = "recordings\n"
                     "recordings prune --older-than 30d --dry-run\n"
                     "recordings rm last"},
    Verb{.name = "merge",
         .summary = "join the recordings of several machines, or of one after the other, into one",
         .declare = declare_merge,
         .usage = "[OPTIONS] FILE|DIR... -o FILE",
         .examples = "merge rec/ -o job.hrec\n"
                     "merge node1.hrec node2.hrec -o job.hrec"},
    Verb{.name = "import",
         .summary = "turn a log of nvidia-smi, dmon or another monitor into a recording",
         .declare = declare_import,
         .usage = "[OPTIONS] LOG",
         .examples = "import gpu_stats.csv\n"
                     "import dmon.log --start-date 2025-11-05 -o run.hrec"},
    Verb{.name = "export",
         .summary = "write a recording as CSV, JSONL, a Chrome/Perfetto trace, metrics for Prometheus, or a whole copy",
         .declare = declare_export,
         .usage = "[OPTIONS] RECORDING",
         .examples = "export last > run.csv\n"
                     "export last --format chrome -o trace.json\n"
                     "export last --format openmetrics"},
    Verb{.name = "sim",
         .summary = "run a command on virtual GPUs",
         .declare = declare_sim,
         .usage = "[OPTIONS] [--] CMD...",
         .examples = "sim --gpus 2xA6000 headroom devices\n"
                     "sim --gpus 1xH100 -- headroom run python3 examples/train.py\n"
                     "sim --list",
         .takes_command = true},
    Verb{.name = "sim-job",
         .summary = "a virtual training program, for use inside sim",
         .declare = declare_sim_job,
         .usage = "[OPTIONS]",
         .examples = "sim -- headroom run headroom sim-job --loader-workers 1 --loader-ms 40"},
    Verb{.name = "doctor",
         .summary = "say what can and cannot be seen here, and what to do about it",
         .declare = declare_doctor,
         .usage = "[OPTIONS]",
         .examples = "doctor\n"
                     "doctor --json",
         .needs_config = false},
    Verb{.name = "completion",
         .summary = "write what completes headroom's words in a shell",
         .declare = declare_completion,
         .usage = "bash|zsh|fish",
         .examples = "completion bash > ~/.local/share/bash-completion/completions/headroom\n"
                     "completion zsh > ~/.zfunc/_headroom\n"
                     "completion fish > ~/.config/fish/completions/headroom.fish",
         .needs_config = false},
    Verb{.name = "__complete",
         .summary = "what a shell may offer for the last of these words",
         .declare = declare_complete,
         .usage = "-- WORDS",
         .examples = "__complete -- batch sh",
         .command_after_dashes = true,
         .hidden = true,
         .needs_config = false},
    Verb{.name = "manual",
         .summary = "write the manual page, headroom(1)",
         .declare = declare_manual,
         .usage = "",
         .examples = "manual | man -l -",
         .hidden = true,
         .needs_config = false},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

const Verb* find_verb(std::string_view name) {
  const auto verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& v) { return v.name == name; });
  return verb == kVerbs.end() ? nullptr : &*verb;
}

std::unique_ptr<DeclaredVerb> declare(const Verb& verb) {
  auto declared = std::unique_ptr<DeclaredVerb>(new DeclaredVerb{
      .verb = verb,
      .after_dashes = {},
      .app = CLI::App(std::string(verb.summary), fmt::format("headroom {}", verb.name)),
      .action = {},
  });
  declared->app.allow_extras();  // arguments.cc says what is wrong with them
  declared->action = verb.declare({declared->app, declared->after_dashes});
  return declared;
}

}  // namespace headroom::cli
