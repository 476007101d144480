// SPDX-License-Identifier: Apache-2.0
#include "model/native_words.h"

#include <array>
#include <string_view>

namespace headroom {

namespace {

struct Words {
  std::string_view of_python, native;
};
// A row may hold what a later one would take: the longer ones stand first.
constexpr std::array kWords{
    Words{"python -c 'import torch; print(torch.version.cuda, torch.cuda.is_available())'; then the CUDA build, "
          "CUDA_VISIBLE_DEVICES, and model.to('cuda')",
          "see whether it was built with CUDA, what CUDA_VISIBLE_DEVICES is, and what cudaGetDeviceCount() says"},
    Words{"check torch.cuda.is_available(), the CUDA build (torch.version.cuda is None for a CPU-only one), ",
          "check what cudaGetDeviceCount() says, that it was built with CUDA, "},
    Words{"check torch.cuda.is_available(), the CUDA build (torch.version.cuda) ",
          "check what cudaGetDeviceCount() says, that it was built with CUDA, "},
    Words{"check that they can (torch.cuda.is_available())", "check that they can (cudaGetDeviceCount())"},
    Words{"have it print torch.cuda.is_available()", "have it print what cudaGetDeviceCount() says"},
    Words{"have the job print torch.cuda.max_memory_allocated() at its end",
          "have the job print what cudaMemGetInfo() says when it has allocated most"},
    Words{"torchrun --nproc-per-node=NUMBER_OF_GPUS and DistributedDataParallel instead of DataParallel",
          "a process per GPU, each with its share of the data, that exchange by NCCL or MPI"},
    Words{" (torch.distributed.pipelining)", ""},
    Words{"headroom run -- python script.py", "headroom run -- CMD"},
    Words{"import late, and only what is needed; cache", "load only what is needed; cache"},
    Words{"map weights instead of reading them (safetensors)", "map weights instead of reading them (mmap)"},
    Words{"; import late", ""},
    Words{"keep the compiler's cache: of torch.compile TORCHINDUCTOR_CACHE_DIR=DIR TRITON_CACHE_DIR=DIR, of JAX "
          "JAX_COMPILATION_CACHE_DIR=DIR, of Numba cache=True; pad or bucket shapes",
          "keep what is compiled at run time: CUDA_CACHE_PATH=DIR for the driver, what NVRTC made in files of its own"},
    Words{"Load data in worker processes", "Load data in threads or processes of its own"},
    Words{"the main thread no longer runs in the loader (headroom stacks)", "the main thread no longer loads"},
    Words{"More loader workers", "More threads or processes that load"},
    Words{"more loader workers", "more threads or processes that load"},
    Words{"loader workers (num_workers)", "threads or processes that load"},
    Words{"prepare it in several processes (num_workers, multiprocessing)",
          "prepare it in several threads or processes"},
    Words{"num_workers=0", "load in the main thread again"},
    Words{"num_workers as before", "as many as before"},
    Words{"DataLoader(..., persistent_workers=True), and headroom compare",
          "processes that load and go on between epochs, and headroom compare"},
    Words{"DataLoader(..., persistent_workers=True)", "let the processes that load go on between epochs"},
    Words{"persistent_workers=False", "start them anew"},
    Words{" (persistent_workers=True)", ""},
    Words{"DataLoader(..., prefetch_factor=8)", "let what loads run further ahead, with a longer queue"},
    Words{"prefetch_factor=2", "the queue as it was"},
    Words{"move it into the data set or collate_fn of worker processes, or a thread that prepares the next batch",
          "move it into a thread that prepares the next step"},
    Words{"the GPU no longer waits in that function (headroom stacks)", "the GPU no longer waits for it"},
    Words{"DataLoader(..., pin_memory=True) and tensor.to(device, non_blocking=True)",
          "copy from pinned memory (cudaHostAlloc, cudaHostRegister) by cudaMemcpyAsync"},
    Words{"pin_memory=False", "the copies as they were"},
    Words{"copy from pinned memory without waiting (pin_memory=True, non_blocking=True)",
          "copy from pinned memory (cudaHostAlloc) without waiting (cudaMemcpyAsync)"},
    Words{"call .item(), .cpu() and print every 50 steps, or on detached copies",
          "read results back and synchronise (cudaDeviceSynchronize, cudaStreamSynchronize) every 50 steps"},
    Words{"torch.compile(model, mode='reduce-overhead'), or CUDA graphs; foreach or fused optimiser",
          "CUDA graphs (cudaStreamBeginCapture), or kernels that each do more"},
    Words{"without compile", "the launches as they were"},
    Words{"torch.autocast('cuda', dtype=torch.bfloat16), TF32 for what stays; headroom ab for both",
          "FP16, BF16 or TF32 in the libraries that compute; headroom ab for both"},
    Words{"torch.set_float32_matmul_precision('high') (TF32), or torch.autocast with bfloat16",
          "TF32 or bfloat16 in the library that computes them"},
    Words{"without autocast", "the precision as it was"},
    Words{"no torch.cuda.empty_cache() in the step; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
          "no cudaMalloc and cudaFree in the step: keep what was allocated, or take it from a pool (cudaMallocAsync)"},
    Words{" (torch.cuda.empty_cache(), a tensor of another size)", " (cudaFree, cudaMalloc)"},
    Words{"run logging or preprocessing in multiprocessing instead of threading",
          "run logging or preprocessing in another process"},
    Words{"twice the training batch in the validation loader, torch.inference_mode(), metrics on the GPU",
          "twice the training batch in the validation, metrics on the GPU"},
    Words{" (torch.distributed.checkpoint.async_save)", ""},
    Words{"torch.save in the loop", "save in the loop"},
    Words{"a loop over several tasks in one process: imports, data and CUDA context come once",
          "a loop over several tasks in one process: data and CUDA context come once"},
    Words{"gradient accumulation with no_sync(), larger buckets (bucket_cap_mb), NCCL over NVLink",
          "an exchange once in several steps, larger pieces, NCCL over NVLink"},
    Words{
        "one memory format and one buffer from end to end: contiguous(), clone() and cat() once and not in each step, "
        "in-place or out= where autograd allows it",
        "one layout and one buffer from end to end: cudaMemcpyDeviceToDevice once and not in each step"},
    Words{"headroom stacks --pid PID (gdb -p PID where it is no Python)",
          "gdb -p PID -batch -ex 'thread apply all bt'"},
    Words{"num_workers", "workers"},
};

}  // namespace

std::string native_words(std::string advice) {
  for (const Words& words : kWords)
    for (auto at = advice.find(words.of_python); at != std::string::npos;
         at = advice.find(words.of_python, at + words.native.size()))
      advice.replace(at, words.of_python.size(), words.native);
  return advice;
}

}  // namespace headroom
