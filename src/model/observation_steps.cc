// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "model/advice_words.h"
#include "model/native_words.h"
#include "model/observations.h"

namespace headroom {

namespace {

// How an observation is made. {stacks} stands for what shows the stacks of process PID.
struct Step {
  std::string_view observe;
  std::string_view how;
  bool of_process = false;  // it looks at the job while that runs
};
constexpr std::array kSteps{
    Step{"nvidia-smi while it trains; torch.cuda.is_available()",
         "nvidia-smi while it trains: its process is not in the list? Then have it print torch.cuda.is_available()",
         true},
    Step{"the driver's process list per GPU",
         "nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv while it trains: which process uses which GPU",
         true},
    Step{"the driver's process list",
         "nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv while it trains: whose are the other processes?",
         true},
    Step{"the same run with fewer GPUs",
         "CUDA_VISIBLE_DEVICES=0 headroom run -- CMD, then headroom compare: is it slower with fewer GPUs?"},
    Step{"who owns the process",
         "ps -o user,tty,cmd -p PID of the process on the GPU: is it a notebook or a shell that somebody types in?",
         true},
    Step{"what the process does now", "{stacks} of the process that holds the GPU: is it still at work?", true},
    Step{
        "the end of the job's log",
        "read the end of the job's log: did it save or send something after its last step, or stand still until it was "
        "ended?"},
    Step{"the job's child processes", "ps -ef --forest while it starts: is pip, conda or a build below it?", true},
    Step{"a second run with warm caches",
         "headroom run -- CMD a second time, right after the first: what is then shorter was read from the disk"},
    Step{"the times of the first steps",
         "have the job print how long each of its first 20 steps takes: only the first ones long is compiling"},
    Step{
        "a step with a cached batch; headroom stacks --pid",
        "train some steps on one batch that is kept: if they are faster, it waited for data; or {stacks} while the GPU "
        "waits"},
    Step{"a step with a cached batch",
         "train some steps on one batch that is kept: if they are faster, it waited for data"},
    Step{"headroom run (CPU of the loader processes)",
         "headroom run -- CMD, which reads what the loader's processes use of the CPU"},
    Step{"headroom run (how long processes wait for a core)",
         "headroom run -- CMD, which reads how long processes wait for a core"},
    Step{"headroom run (reads, and time blocked on storage)",
         "headroom run -- CMD, which reads how much is read, and how long processes are blocked on storage"},
    Step{"headroom run (process starts)", "headroom run -- CMD, which sees the processes that start"},
    Step{"headroom run (bytes written)", "headroom run -- CMD, which reads how many bytes are written"},
    Step{"headroom run (process CPU), then headroom stacks --pid",
         "headroom run -- CMD, which reads what processes use of the CPU, and the stacks of Python"},
    Step{"reads in the second epoch", "iostat -x 5 in the second epoch: as many reads as in the first?", true},
    Step{"the distribution of waiting times",
         "have the job print how long each step waits for its batch: few long waits are bursts, many short ones a slow "
         "loader"},
    Step{"a hash of the prepared data",
         "have the job print a hash of one prepared sample in two epochs: if they are equal, it is prepared twice"},
    Step{"Nsight Systems (copies)",
         "nsys profile -t cuda CMD: are copies to the device from pageable memory, and how long do they take?"},
    Step{"Nsight Systems (CUDA API), or headroom stacks --pid",
         "nsys profile -t cuda CMD: how long do calls such as cudaStreamSynchronize take? Or {stacks} while the GPU "
         "waits"},
    Step{"Nsight Systems (CUDA API)",
         "nsys profile -t cuda CMD: which calls, such as cudaStreamSynchronize or cudaMalloc, take the time?"},
    Step{"Nsight Systems (length of the kernels)",
         "nsys profile -t cuda CMD: are kernels shorter than the gaps between them?"},
    Step{"Nsight Systems (kernel names)",
         "nsys profile -t cuda CMD on every rank: how long do kernels of NCCL run beside no other kernel?"},
    Step{"link width under load",
         "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv while it trains", true},
    Step{"two batch sizes measured", "headroom probe --vary batch_size=SIZE,LARGER -- CMD with {batch_size}"},
    Step{"the allocator's own peak", "have the job print torch.cuda.max_memory_allocated() at its end"},
    Step{"SM and tensor activity (DCGM, Nsight)",
         "dcgmi dmon -e 1002,1004 while it trains: how active are the SMs and the tensor cores?", true},
    Step{"headroom stacks --pid", "{stacks} several times while the GPU waits: what is it at?", true},
    Step{"the log of the job",
         "read the job's log: what does it print at the times when the GPU waits, a validation? headroom run "
         "--output-lines reads that from it"},
    Step{"the log of the job; headroom stacks --pid",
         "read the job's log: does the GPU wait where an epoch ends? Or, when the next run is "
         "there, {stacks}: what is it at?"},
    Step{"the log of the job; a run without that work",
         "read the job's log: does the GPU wait where an epoch ends? Then headroom run -- CMD without that work, "
         "and headroom compare"},
    Step{"the study's storage",
         "headroom study STORAGE RECORDING: how long do trials take to start, and how did they end?"},
    Step{"two tasks at once on one GPU",
         "start two tasks at once on one GPU: do both together take less than one after the other?"},
    Step{"the tasks' durations", "headroom why RECORDING --json: how long did each task take?"},
    Step{"step times per rank",
         "have every rank print how long each of its steps takes up to its exchange with the others: is one of them "
         "longer?"},
    Step{"clock event counters under load",
         "nvidia-smi -q -d PERFORMANCE while it trains: which reasons for lower clocks are active?", true},
    Step{"major faults and swap-ins", "vmstat 5 while it trains: si and so above 0 is swapping", true},
    Step{"exit codes",
         "read the log of what starts the job again: how did each start end, and did it run out of memory?"},
    Step{"stacks of all threads", "{stacks} of the process that stands still: what does each thread wait for?", true},
    Step{"CUDA_VISIBLE_DEVICES of each process beside its GPU in nvidia-smi",
         "tr '\\0' '\\n' </proc/PID/environ | grep CUDA_VISIBLE_DEVICES, for each process that nvidia-smi lists: is it "
         "meant for that GPU?",
         true},
    Step{"the program: what it puts on each GPU",
         "read in the program what it puts on each GPU: parts of one model take turns, copies of it get shares of each "
         "batch"},
    Step{"the same run with the other load stopped, or with fewer threads",
         "headroom run -- CMD with the other load stopped, or with OMP_NUM_THREADS=1, and headroom compare"},
    Step{"the same files read a second time, from memory",
         "headroom run -- CMD a second time, right after the first, while its files are in memory: if the waits are "
         "gone, it was the storage"},
    Step{"the same data asked for again, from a copy nearby",
         "headroom run -- CMD once with the data that it asks for kept on this machine, and headroom compare: if the "
         "waits are gone, it was what sends the data, or the way to it"},
    Step{"a run with workers that stay",
         "headroom run -- CMD with DataLoader(..., persistent_workers=True), and headroom compare"},
    Step{"headroom stacks: what it was at while the GPU was idle",
         "headroom stacks RECORDING: what was it at while the GPU was idle?"},
    Step{"its Python stacks: headroom run reads them, or headroom stacks --pid",
         "headroom run --stacks 20 -- CMD, then headroom stacks: what is it at while the GPU is idle?"},
    Step{"a run with the other threads stopped",
         "headroom run -- CMD with the other threads stopped, and headroom compare"},
    Step{"a run without checkpoints", "headroom run -- CMD without checkpoints, and headroom compare"},
    Step{"a run with logging off", "headroom run -- CMD with logging off, and headroom compare"},
    Step{"the job's script: what runs between the programs that use the GPU",
         "read the job's script: what runs between the programs that use the GPU?"},
    Step{kNativeStacks, "{stacks} several times while the GPU waits: what is it at?", true},
};

}  // namespace

std::string step_of_observation(Cause cause, const Finding& finding, const RecordingMeta& meta) {
  const std::string_view observe = next_observation(cause, finding, meta);
  const auto step = std::find_if(kSteps.begin(), kSteps.end(), [&](const Step& row) { return row.observe == observe; });
  if (step == kSteps.end()) return std::string(observe);
  const std::string_view stacks = without_python(meta) ? kNativeStacks : "headroom stacks --pid PID";
  std::string how(step->how);
  constexpr std::string_view kOneThread = ", or with OMP_NUM_THREADS=1";
  if (const auto at = how.find(kOneThread); at != std::string::npos && one_thread_each(meta))
    how.erase(at, kOneThread.size());
  if (const auto at = how.find("{stacks}"); at != std::string::npos) how.replace(at, 8, stacks);
  if (without_python(meta)) how = native_words(std::move(how));
  const bool gone = job_is_over(meta) || is_imported(meta);
  return step->of_process && gone ? "in the next run, " + how : how;
}

}  // namespace headroom
