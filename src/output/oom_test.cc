// SPDX-License-Identifier: Apache-2.0
#include "output/oom.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace headroom::output {
namespace {

using ::testing::HasSubstr;

struct Case {
  OomKind kind;
  const char* output;
};

OomVerdict of(const char* output, int exit_code = 1) {
  return recognise_oom({.exit_code = exit_code, .output_tail = output});
}

TEST(Oom, EachLibrarysWordsAreRecognisedAndQuoted) {
  const Case cases[] = {
      {OomKind::kPyTorch,
       "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; "
       "20.1 GiB "
       "already allocated) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
       "fragmentation."},
      {OomKind::kPyTorch,
       "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 47.43 "
       "GiB"},
      {OomKind::kPyTorch,
       "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.80 GiB total capacity)"},
      {OomKind::kPyTorch,
       "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"},
      {OomKind::kTensorFlow,
       "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__Conv2D}} OOM when "
       "allocating tensor with shape[256,512,56,56] and type float on /job:localhost/device:GPU:0 by allocator "
       "GPU_0_bfc"},
      {OomKind::kTensorFlow,
       "2024-05-02 10:00:00.123: E tensorflow/stream_executor/cuda/cuda_driver.cc:733] failed to allocate 9.00G "
       "(9663676416 "
       "bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"},
      {OomKind::kJax,
       "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 "
       "bytes."},
      {OomKind::kJax, "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 4294967296 bytes."},
      {OomKind::kXgboost,
       "xgboost.core.XGBoostError: [10:00:00] ../src/common/device_helpers.cu:25: Memory allocation error on worker 0: "
       "bad "
       "allocation: cudaErrorMemoryAllocation: out of memory"},
      {OomKind::kLightgbm, "[LightGBM] [Fatal] [CUDA] out of memory /LightGBM/src/treelearner/cuda/cuda_data.cu 52"},
      {OomKind::kLightgbm, "boost::compute::opencl_error: Memory Object Allocation Failure"},
      {OomKind::kCublas, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
      {OomKind::kCuda, "thrust::system_error: cudaErrorMemoryAllocation: out of memory"},
      {OomKind::kCuda, "cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_OUT_OF_MEMORY: out of memory"},
      {OomKind::kCuda, "CUDA error: out of memory at main.cu:41"},
      {OomKind::kHostKiller,
       "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some step tasks have been OOM Killed."},
      {OomKind::kHostAllocation,
       "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc"},
      {OomKind::kHostAllocation, "MemoryError"},
      {OomKind::kHostAllocation,
       "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape (100000, "
       "100000)"},
      {OomKind::kHostAllocation,
       "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 8 GB"},
  };
  for (const Case& c : cases) {
    const std::string output = std::string("epoch 3 loss 0.12\n") + c.output + "\n";
    const OomVerdict verdict = of(output.c_str());
    EXPECT_EQ(oom_kind_name(verdict.kind), oom_kind_name(c.kind)) << c.output;
    EXPECT_THAT(c.output, HasSubstr(verdict.evidence.substr(0, 40)));
  }
}

TEST(Oom, LookAlikesAreNot) {
  for (const char* output : {
           "ValueError: invalid value 'out of memory' for option mode",
           "INFO: expandable segments on, to avoid CUDA out of memory. Tried to allocate nothing yet",
           "WARNING: CUDA out of memory. Tried to allocate 2 GiB: reducing batch size to 16 and going on\nKeyError: "
           "'loss'",
           "FileNotFoundError: [Errno 2] No such file or directory: 'oom.csv'",
           "CUDA error: an illegal memory access was encountered",
           "CUDA error: device-side assert triggered",
           "RuntimeError: CUDA error: no kernel image is available for execution on the device",
           "class MyMemoryErrorHandler loaded\nAssertionError",
           "room in the zoom of the bloom",
           "OSError: [Errno 28] No space left on device",
           "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
           "memory used: 12 GiB, limit 48 GiB\nKeyboardInterrupt",
           "",
       })
    EXPECT_EQ(of(output).kind, OomKind::kNone) << output;
}

TEST(Oom, ASuccessIsNeverOne) {
  EXPECT_EQ(of("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", 0).kind, OomKind::kNone);
}

TEST(Oom, TheKernelsKillIsToldFromOthers) {
  EXPECT_EQ(recognise_oom({.exit_code = 137, .cgroup_oom_kills = 1}).kind, OomKind::kHostKiller);
  EXPECT_EQ(recognise_oom({.exit_code = 137}).kind, OomKind::kNone) << "somebody's kill -9";
  const OomVerdict worker = recognise_oom({.exit_code = 1, .output_tail = "worker exited", .cgroup_oom_kills = 2});
  EXPECT_EQ(worker.kind, OomKind::kHostKiller) << "a data loader was killed, the trainer failed of it";
  EXPECT_THAT(worker.evidence, HasSubstr("2 OOM kills"));
}

// Who waits for a worker names it; that the kernel killed it for memory only the kernel's count says.
TEST(Oom, AWorkerThatIsGoneRanOutOfMemoryWhereTheKernelCountsAKill) {
  for (const char* line : {"RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. ",
                           "RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly"}) {
    const std::string output = fmt::format("Traceback (most recent call last):\n{}\n", line);
    OomEvidence seen{.exit_code = 1, .output_tail = output};
    EXPECT_EQ(recognise_oom(seen).kind, OomKind::kNone) << line;
    seen.oom_kill_meanwhile = true;
    EXPECT_EQ(recognise_oom(seen).kind, OomKind::kHostKiller) << line;
    EXPECT_THAT(recognise_oom(seen).evidence, HasSubstr("the kernel counted an OOM kill in its cgroup meanwhile"));
    EXPECT_THAT(recognise_oom(seen).evidence, HasSubstr("DataLoader worker (pid"));
    seen.oom_kills_of_machine = true;
    EXPECT_THAT(recognise_oom(seen).evidence, HasSubstr("an OOM kill on this machine"));
  }
  EXPECT_EQ(recognise_oom({.exit_code = 1, .output_tail = "ValueError: 3\n", .oom_kill_meanwhile = true}).kind,
            OomKind::kNone)
      << "it may have been another process of that cgroup";
}

TEST(Oom, AGpusWordsCountMoreThanTheHosts) {
  EXPECT_EQ(of("std::bad_alloc\nxgboost: Memory allocation error on worker 0").kind, OomKind::kXgboost);
}

TEST(Oom, AFullGpuIsEvidenceUnlessAPersonStoppedIt) {
  constexpr std::int64_t kTotal = 48'000'000'000;
  OomEvidence seen{.exit_code = 1, .peak_gpu_used_bytes = kTotal * 99 / 100, .gpu_memory_bytes = kTotal};
  EXPECT_EQ(recognise_oom(seen).kind, OomKind::kFullGpu);
  seen.exit_code = 130;
  EXPECT_EQ(recognise_oom(seen).kind, OomKind::kNone);
  seen.exit_code = 1;
  seen.peak_gpu_used_bytes = kTotal / 2;
  EXPECT_EQ(recognise_oom(seen).kind, OomKind::kNone);
}

TEST(Oom, WhoRanOutDecidesWhatIsReserved) {
  EXPECT_TRUE(is_host(OomKind::kHostKiller));
  EXPECT_TRUE(is_host(OomKind::kHostAllocation));
  EXPECT_FALSE(is_host(OomKind::kXgboost));
}

TEST(Oom, OneLineIsTakenAsItComes) {
  EXPECT_TRUE(says_gpu_out_of_memory("RuntimeError: CUDA error: out of memory"));
  EXPECT_TRUE(says_gpu_out_of_memory("  CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"));
  EXPECT_FALSE(says_gpu_out_of_memory("MemoryError")) << "the host's";
  EXPECT_FALSE(says_gpu_out_of_memory("CUDA out of memory, retrying with batch 8"));
  EXPECT_FALSE(says_gpu_out_of_memory("epoch 3 loss 0.1"));
}

}  // namespace
}  // namespace headroom::output
