// SPDX-License-Identifier: Apache-2.0
#include "stacks/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/enum_table.h"

namespace headroom::stacks {

namespace {

constexpr std::array kFamilies{
    FamilyInfo{Family::kNone, "none", "other code", Account::kUnexplained, Busy::kUnknown, -1},
    FamilyInfo{Family::kLoaderFetch, "loader_fetch", "reading a batch", Account::kInput, Busy::kIdle, 5},
    FamilyInfo{Family::kLoaderWait, "loader_wait", "waiting for loader workers", Account::kInput, Busy::kIdle, 6},
    FamilyInfo{Family::kCollate, "collate", "collating a batch", Account::kInput, Busy::kIdle, 6},
    FamilyInfo{Family::kTransform, "transform", "transforms of the input", Account::kInput, Busy::kIdle, 6},
    FamilyInfo{Family::kDatasetIndex, "dataset_index", "indexing the data", Account::kInput, Busy::kIdle, 5},
    FamilyInfo{Family::kCopy, "copy", "copying to the device", Account::kTransfer, Busy::kUnknown, 5},
    FamilyInfo{Family::kForward, "forward", "forward pass", Account::kHostCode, Busy::kLaunches, 2},
    FamilyInfo{Family::kBackward, "backward", "backward pass", Account::kHostCode, Busy::kLaunches, 3},
    FamilyInfo{Family::kOptimizer, "optimizer", "optimizer step", Account::kHostCode, Busy::kLaunches, 3},
    FamilyInfo{Family::kSync, "sync", "CUDA synchronisation", Account::kSync, Busy::kWaitsForKernels, 5},
    FamilyInfo{Family::kPeers, "peers", "exchange with other processes", Account::kPeers, Busy::kUnknown, 6},
    FamilyInfo{Family::kMetrics, "metrics", "metrics", Account::kHostCode, Busy::kIdle, 3},
    FamilyInfo{Family::kEvaluation, "evaluation", "evaluation", Account::kValidationHost, Busy::kUnknown, 4},
    FamilyInfo{Family::kCheckpoint, "checkpoint", "saving a checkpoint", Account::kCheckpoint, Busy::kIdle, 6},
    FamilyInfo{Family::kLogging, "logging", "logging or upload", Account::kHostCode, Busy::kIdle, 5},
    FamilyInfo{Family::kImport, "import", "import", Account::kStartup, Busy::kIdle, 1},
    FamilyInfo{Family::kGraph, "graph", "building graphs", Account::kHostCode, Busy::kIdle, 4},
    FamilyInfo{Family::kCompile, "compile", "compiling", Account::kHostCode, Busy::kIdle, 5},
    FamilyInfo{Family::kAllocator, "allocator", "giving memory back to the driver", Account::kHostCode, Busy::kUnknown,
               5},
    FamilyInfo{Family::kTrial, "trial", "asking or telling the study", Account::kHostCode, Busy::kIdle, 5},
    FamilyInfo{Family::kSleep, "sleep", "sleeping or polling", Account::kUnexplained, Busy::kIdle, 0},
    FamilyInfo{Family::kLock, "lock", "waiting for a lock or a queue", Account::kUnexplained, Busy::kIdle, 0},
};
static_assert(in_order_of_ids(kFamilies));

using F = Family;
// clang-format off
const std::array kRules{
    // The data loader, in the training process and in its workers
    FamilyRule{F::kLoaderWait, "torch/utils/data/dataloader.py", "_try_get_data"},
    FamilyRule{F::kLoaderWait, "torch/utils/data/dataloader.py", "_get_data"},
    FamilyRule{F::kLoaderFetch, "torch/utils/data/dataloader.py", "*"},
    FamilyRule{F::kLoaderFetch, "torch/utils/data/_utils/fetch.py", "fetch"},
    FamilyRule{F::kLoaderFetch, "torch/utils/data/dataset.py", "__getitem__"},
    FamilyRule{F::kLoaderFetch, "torch_geometric/loader/", "*"},
    FamilyRule{F::kLoaderFetch, "tensorflow/python/data/", "*next*"},
    FamilyRule{F::kLoaderFetch, "keras/src/trainers/data_adapters/", "*"},
    FamilyRule{F::kLoaderFetch, "keras/utils/data_utils.py", "get"},
    FamilyRule{F::kLoaderFetch, "datasets/arrow_dataset.py", "__getitem*"},
    FamilyRule{F::kLoaderFetch, "datasets/iterable_dataset.py", "__iter__"},
    FamilyRule{F::kLoaderFetch, "grain/_src/", "*next*"},
    FamilyRule{F::kLoaderFetch, "datasets/formatting/", "*"},
    FamilyRule{F::kLoaderFetch, "datasets/table.py", "*"},
    FamilyRule{F::kLoaderFetch, "torchvision/datasets/", "__getitem__"},
    FamilyRule{F::kLoaderFetch, "torchvision/io/", "*read*"},
    FamilyRule{F::kLoaderFetch, "torchvision/io/", "decode*"},
    FamilyRule{F::kLoaderFetch, "torchaudio/_backend/", "*load*"},
    FamilyRule{F::kLoaderFetch, "torch/serialization.py", "*load*"},
    FamilyRule{F::kLoaderFetch, "numpy/lib/npyio.py", "*load*"},
    FamilyRule{F::kLoaderFetch, "numpy/lib/_npyio_impl.py", "*load*"},
    FamilyRule{F::kLoaderFetch, "numpy/lib/format.py", "read_array"},
    FamilyRule{F::kLoaderFetch, "pandas/io/parsers/", "*"},
    FamilyRule{F::kLoaderFetch, "pandas/io/parquet.py", "read*"},
    FamilyRule{F::kLoaderFetch, "pyarrow/", "*read*"},
    FamilyRule{F::kLoaderFetch, "h5py/_hl/dataset.py", "__getitem__"},
    FamilyRule{F::kLoaderFetch, "zarr/", "__getitem__"},
    FamilyRule{F::kLoaderFetch, "webdataset/", "*"},
    FamilyRule{F::kLoaderFetch, "petastorm/", "*"},
    FamilyRule{F::kLoaderFetch, "streaming/base/", "*"},
    FamilyRule{F::kLoaderFetch, "litdata/", "*"},
    FamilyRule{F::kLoaderFetch, "nvidia/dali/", "*"},
    FamilyRule{F::kLoaderFetch, "ffcv/", "*"},
    FamilyRule{F::kLoaderFetch, "decord/", "*"},
    FamilyRule{F::kLoaderFetch, "imageio/", "*read*"},
    FamilyRule{F::kLoaderFetch, "skimage/io/", "*read*"},
    FamilyRule{F::kLoaderFetch, "", "imread()"},
    FamilyRule{F::kLoaderFetch, "/soundfile.py", "read"},
    FamilyRule{F::kLoaderFetch, "boto3/", "*download*"},
    FamilyRule{F::kLoaderFetch, "/csv.py", "__next__"},
    FamilyRule{F::kLoaderFetch, "/gzip.py", "read*"},
    FamilyRule{F::kLoaderFetch, "/bz2.py", "read*"},
    FamilyRule{F::kLoaderFetch, "/lzma.py", "read*"},
    FamilyRule{F::kLoaderFetch, "/zipfile.py", "read*"},
    FamilyRule{F::kLoaderFetch, "/tarfile.py", "read*"},
    FamilyRule{F::kLoaderFetch, "", "__getitem__", true},
    FamilyRule{F::kLoaderFetch, "", "load_batch", true},
    FamilyRule{F::kLoaderFetch, "", "next_batch", true},
    FamilyRule{F::kLoaderFetch, "", "get_batch", true},
    FamilyRule{F::kLoaderFetch, "", "read_batch", true},
    FamilyRule{F::kLoaderFetch, "", "fetch_batch", true},
    FamilyRule{F::kLoaderFetch, "", "sample_batch", true},
    FamilyRule{F::kLoaderFetch, "", "make_batch*", true},
    FamilyRule{F::kLoaderFetch, "", "iter_batch*", true},
    FamilyRule{F::kLoaderFetch, "", "load_record*", true},
    FamilyRule{F::kLoaderFetch, "", "read_record*", true},
    FamilyRule{F::kLoaderFetch, "", "load_example*", true},
    FamilyRule{F::kLoaderFetch, "", "read_example*", true},
    FamilyRule{F::kLoaderFetch, "", "load_sample*", true},
    FamilyRule{F::kLoaderFetch, "", "read_sample*", true},
    FamilyRule{F::kLoaderFetch, "", "load_image*", true},
    FamilyRule{F::kLoaderFetch, "", "read_image*", true},
    FamilyRule{F::kLoaderFetch, "", "load_shard*", true},
    FamilyRule{F::kLoaderFetch, "", "read_shard*", true},
    FamilyRule{F::kLoaderFetch, "", "read_frame*", true},
    FamilyRule{F::kLoaderFetch, "", "load_audio*", true},
    FamilyRule{F::kLoaderFetch, "", "load_video*", true},
    FamilyRule{F::kCollate, "torch/utils/data/_utils/collate.py", "*"},
    FamilyRule{F::kCollate, "torch_geometric/data/batch.py", "from_data_list"},
    FamilyRule{F::kCollate, "transformers/data/data_collator.py", "*"},
    FamilyRule{F::kCollate, "", "*collate*", true},
    FamilyRule{F::kTransform, "torchvision/transforms/", "*"},
    FamilyRule{F::kTransform, "torchaudio/transforms/", "*"},
    FamilyRule{F::kTransform, "albumentations/", "*"},
    FamilyRule{F::kTransform, "monai/transforms/", "*"},
    FamilyRule{F::kTransform, "tokenizers/", "*"},
    FamilyRule{F::kTransform, "/tokenization_", "*"},
    FamilyRule{F::kTransform, "/image_processing_", "*"},
    FamilyRule{F::kTransform, "/feature_extraction_", "*"},
    FamilyRule{F::kTransform, "sentencepiece/", "*"},
    FamilyRule{F::kTransform, "", "imdecode()"},
    FamilyRule{F::kTransform, "PIL/ImageFile.py", "load"},
    FamilyRule{F::kTransform, "PIL/Image.py", "resize"},
    FamilyRule{F::kTransform, "PIL/Image.py", "convert"},
    FamilyRule{F::kTransform, "PIL/Image.py", "crop"},
    FamilyRule{F::kTransform, "PIL/Image.py", "rotate"},
    FamilyRule{F::kTransform, "PIL/ImageOps.py", "*"},
    FamilyRule{F::kTransform, "PIL/ImageEnhance.py", "*"},
    FamilyRule{F::kTransform, "PIL/ImageFilter.py", "*"},
    FamilyRule{F::kTransform, "imgaug/", "*"},
    FamilyRule{F::kTransform, "librosa/", "*"},
    FamilyRule{F::kTransform, "skimage/transform/", "*"},
    FamilyRule{F::kTransform, "scipy/ndimage/", "*"},
    FamilyRule{F::kTransform, "", "*transform*", true},
    FamilyRule{F::kTransform, "", "*augment*", true},
    FamilyRule{F::kTransform, "", "decode_image*", true},
    FamilyRule{F::kTransform, "", "decode_jpeg*", true},
    FamilyRule{F::kTransform, "", "decode_audio*", true},
    FamilyRule{F::kTransform, "", "decode_video*", true},
    FamilyRule{F::kDatasetIndex, "xgboost/data.py", "*"},
    FamilyRule{F::kDatasetIndex, "lightgbm/basic.py", "construct"},
    FamilyRule{F::kDatasetIndex, "lightgbm/basic.py", "_lazy_init"},
    FamilyRule{F::kDatasetIndex, "", "*build_index*", true},
    FamilyRule{F::kDatasetIndex, "", "*index_files*", true},
    FamilyRule{F::kDatasetIndex, "torchvision/datasets/folder.py", "make_dataset"},
    FamilyRule{F::kCopy, "torch/utils/data/_utils/pin_memory.py", "*"},
    FamilyRule{F::kCopy, "", "to_device", true},
    FamilyRule{F::kCopy, "", "move_to_device", true},
    FamilyRule{F::kCopy, "", "*data_to_device*"},
    FamilyRule{F::kCopy, "", "cuda()"},  // with brackets: what a line calls (stacks::text_of_call)
    FamilyRule{F::kCopy, "", "copy_()"},
    FamilyRule{F::kCopy, "jax/_src/api.py", "device_put*"},
    FamilyRule{F::kCopy, "accelerate/utils/operations.py", "*send_to_device*"},
    FamilyRule{F::kCopy, "numba/cuda/cudadrv/driver.py", "host_to_device"},
    FamilyRule{F::kCopy, "numba/cuda/cudadrv/driver.py", "device_to_host"},
    // The step
    FamilyRule{F::kForward, "torch/nn/modules/", "*"},
    FamilyRule{F::kForward, "torch/nn/functional.py", "*"},
    FamilyRule{F::kForward, "flax/linen/module.py", "apply"},
    FamilyRule{F::kForward, "keras/src/layers/layer.py", "__call__"},
    FamilyRule{F::kForward, "", "forward"},
    FamilyRule{F::kBackward, "torch/autograd/", "backward"},
    FamilyRule{F::kBackward, "torch/_tensor.py", "backward"},
    FamilyRule{F::kBackward, "tensorflow/python/eager/backprop.py", "gradient"},
    FamilyRule{F::kOptimizer, "torch/optim/", "*"},
    FamilyRule{F::kOptimizer, "optax/", "*"},
    FamilyRule{F::kOptimizer, "keras/src/optimizers/", "*"},
    FamilyRule{F::kOptimizer, "xgboost/core.py", "update"},  // a round of boosting
    FamilyRule{F::kOptimizer, "xgboost/core.py", "boost"},
    FamilyRule{F::kOptimizer, "lightgbm/basic.py", "update"},
    FamilyRule{F::kOptimizer, "lightgbm/basic.py", "*__boost"},
    FamilyRule{F::kSync, "torch/cuda/__init__.py", "synchronize"},
    FamilyRule{F::kSync, "torch/cuda/streams.py", "synchronize"},
    FamilyRule{F::kSync, "", "item()"},  // reads from the device: waits for what was launched before
    FamilyRule{F::kSync, "", "cpu()"},
    FamilyRule{F::kSync, "", "block_until_ready()"},
    FamilyRule{F::kSync, "", "synchronize()"},
    FamilyRule{F::kSync, "jax/_src/", "block_until_ready"},
    FamilyRule{F::kSync, "/headroom_sim.py", "_wait"},
    // Exchanges between processes, each of which waits for the others
    FamilyRule{F::kPeers, "torch/distributed/distributed_c10d.py", "*"},
    FamilyRule{F::kPeers, "torch/distributed/nn/functional.py", "*"},
    FamilyRule{F::kPeers, "torch/distributed/rpc/", "*"},
    FamilyRule{F::kPeers, "horovod/", "synchronize"},
    FamilyRule{F::kPeers, "horovod/", "*all*"},
    FamilyRule{F::kPeers, "horovod/", "*broadcast*"},
    FamilyRule{F::kPeers, "deepspeed/comm/", "*"},
    FamilyRule{F::kPeers, "accelerate/utils/operations.py", "*gather*"},
    FamilyRule{F::kPeers, "ray/util/collective/", "*"},
    FamilyRule{F::kPeers, "jax/experimental/multihost_utils.py", "*"},
    FamilyRule{F::kPeers, "", "*all_reduce*", true},
    FamilyRule{F::kPeers, "", "*allreduce*", true},
    FamilyRule{F::kPeers, "", "*all_gather*", true},
    FamilyRule{F::kPeers, "", "*allgather*", true},
    FamilyRule{F::kPeers, "", "*reduce_scatter*", true},
    FamilyRule{F::kPeers, "", "broadcast", true},
    FamilyRule{F::kPeers, "", "barrier", true},
    FamilyRule{F::kPeers, "", "*_barrier", true},
    FamilyRule{F::kSync, "", "synchronize"},
    // Metrics and evaluation
    FamilyRule{F::kMetrics, "torchmetrics/", "*"},
    FamilyRule{F::kMetrics, "sklearn/metrics/", "*"},
    FamilyRule{F::kMetrics, "", "*compute_metrics*", true},
    FamilyRule{F::kEvaluation, "lightning/pytorch/loops/evaluation_loop.py", "*"},
    FamilyRule{F::kEvaluation, "pytorch_lightning/loops/evaluation_loop.py", "*"},
    FamilyRule{F::kEvaluation, "pytorch_lightning/loops/dataloader/evaluation_loop.py", "*"},
    FamilyRule{F::kEvaluation, "transformers/trainer.py", "evaluat*"},
    FamilyRule{F::kEvaluation, "keras/", "evaluate"},
    FamilyRule{F::kEvaluation, "xgboost/core.py", "eval*"},
    FamilyRule{F::kEvaluation, "lightgbm/basic.py", "*inner_eval"},
    FamilyRule{F::kEvaluation, "lightgbm/basic.py", "eval*"},
    FamilyRule{F::kEvaluation, "sklearn/model_selection/_validation.py", "*"},
    FamilyRule{F::kEvaluation, "", "*validat*", true},
    FamilyRule{F::kEvaluation, "", "*evaluat*", true},
    FamilyRule{F::kEvaluation, "", "eval", true},
    FamilyRule{F::kEvaluation, "", "eval_*", true},
    FamilyRule{F::kEvaluation, "", "*_eval", true},
    // What is written
    FamilyRule{F::kCheckpoint, "torch/serialization.py", "*save*"},
    FamilyRule{F::kCheckpoint, "safetensors/torch.py", "save*"},
    FamilyRule{F::kCheckpoint, "/checkpoint_io.py", "*"},
    FamilyRule{F::kCheckpoint, "callbacks/model_checkpoint.py", "*save*"},
    FamilyRule{F::kCheckpoint, "transformers/trainer.py", "_save*"},
    FamilyRule{F::kCheckpoint, "keras/src/saving/", "save*"},
    FamilyRule{F::kCheckpoint, "xgboost/core.py", "save_model"},
    FamilyRule{F::kCheckpoint, "lightgbm/basic.py", "save_model"},
    FamilyRule{F::kCheckpoint, "orbax/checkpoint/", "save*"},
    FamilyRule{F::kCheckpoint, "numpy/lib/npyio.py", "*savez*"},  // several arrays by name, as weights are
    FamilyRule{F::kCheckpoint, "numpy/lib/_npyio_impl.py", "*savez*"},
    FamilyRule{F::kCheckpoint, "joblib/numpy_pickle.py", "dump"},
    FamilyRule{F::kCheckpoint, "flax/training/checkpoints.py", "save*"},
    FamilyRule{F::kCheckpoint, "", "*checkpoint*", true},
    FamilyRule{F::kCheckpoint, "", "*ckpt*", true},
    FamilyRule{F::kCheckpoint, "", "save_state*", true},
    FamilyRule{F::kCheckpoint, "", "save_weights*", true},
    FamilyRule{F::kCheckpoint, "", "save_model*", true},
    FamilyRule{F::kLogging, "wandb/", "*"},
    FamilyRule{F::kLogging, "mlflow/", "*"},
    FamilyRule{F::kLogging, "neptune/", "*"},
    FamilyRule{F::kLogging, "comet_ml/", "*"},
    FamilyRule{F::kLogging, "clearml/", "*"},
    FamilyRule{F::kLogging, "tensorboard/", "*"},
    FamilyRule{F::kLogging, "torch/utils/tensorboard/", "*"},
    FamilyRule{F::kLogging, "/logging/__init__.py", "*"},
    FamilyRule{F::kLogging, "requests/api.py", "post"},
    FamilyRule{F::kLogging, "requests/api.py", "put"},
    FamilyRule{F::kLogging, "requests/sessions.py", "post"},
    FamilyRule{F::kLogging, "requests/sessions.py", "put"},
    FamilyRule{F::kLogging, "boto3/", "*upload*"},
    FamilyRule{F::kLogging, "matplotlib/", "savefig"},
    FamilyRule{F::kLogging, "", "*upload*", true},
    FamilyRule{F::kLogging, "", "log_hist*", true},
    FamilyRule{F::kLogging, "", "log_image*", true},
    FamilyRule{F::kLogging, "", "log_gradient*", true},
    FamilyRule{F::kLogging, "", "log_weight*", true},
    FamilyRule{F::kLogging, "", "log_stat*", true},
    FamilyRule{F::kLogging, "", "log_to_*", true},
    FamilyRule{F::kLogging, "", "add_histogram*", true},
    FamilyRule{F::kLogging, "", "log_metric*", true},
    FamilyRule{F::kLogging, "", "log_scalar*", true},
    FamilyRule{F::kLogging, "", "write_log*", true},
    FamilyRule{F::kLogging, "", "send_metric*", true},
    FamilyRule{F::kLogging, "", "report_metric*", true},
    // Before and beside the work
    FamilyRule{F::kImport, "importlib._bootstrap", "*"},
    FamilyRule{F::kImport, "/importlib/__init__.py", "import_module"},
    FamilyRule{F::kGraph, "torch_geometric/nn/pool/", "*"},
    FamilyRule{F::kGraph, "torch_geometric/utils/", "*"},
    FamilyRule{F::kGraph, "dgl/sampling/", "*"},
    FamilyRule{F::kGraph, "dgl/convert.py", "*"},
    FamilyRule{F::kGraph, "", "*build_graph*", true},
    FamilyRule{F::kGraph, "", "radius_graph"},
    FamilyRule{F::kGraph, "", "knn_graph"},
    // Beside these, what torch/_dynamo and torch/_inductor have on the stack wraps calls that are compiled already, and
    // those that never are: Optimizer.zero_grad() of every program since PyTorch 2.0.
    FamilyRule{F::kCompile, "torch/_dynamo/convert_frame.py", "*"},
    FamilyRule{F::kCompile, "torch/_inductor/compile_fx.py", "*compile*"},
    FamilyRule{F::kCompile, "torch/_inductor/async_compile.py", "*"},
    FamilyRule{F::kCompile, "torch/_inductor/codecache.py", "*"},
    FamilyRule{F::kCompile, "triton/compiler/", "*"},
    FamilyRule{F::kCompile, "triton/runtime/autotuner.py", "*bench*"},
    FamilyRule{F::kCompile, "torch/utils/cpp_extension.py", "*"},
    FamilyRule{F::kCompile, "jax/_src/compiler.py", "*"},
    FamilyRule{F::kCompile, "jax/_src/interpreters/pxla.py", "*compile*"},
    FamilyRule{F::kCompile, "torch/jit/_script.py", "script"},
    FamilyRule{F::kCompile, "torch/jit/_trace.py", "trace*"},
    FamilyRule{F::kCompile, "triton/backends/nvidia/compiler.py", "*"},
    FamilyRule{F::kCompile, "triton/backends/amd/compiler.py", "*"},
    FamilyRule{F::kCompile, "torch_tensorrt/", "*compile*"},
    FamilyRule{F::kCompile, "deepspeed/ops/op_builder/", "*load*"},
    FamilyRule{F::kCompile, "numba/core/", "*compile*"},
    FamilyRule{F::kCompile, "numba/cuda/", "*compile*"},
    FamilyRule{F::kCompile, "cupy/cuda/compiler.py", "*"},
    FamilyRule{F::kCompile, "pycuda/compiler.py", "*"},
    FamilyRule{F::kAllocator, "torch/cuda/memory.py", "empty_cache"},
    FamilyRule{F::kAllocator, "", "empty_cache()"},
    FamilyRule{F::kAllocator, "", "free_all_blocks()"},
    FamilyRule{F::kTrial, "optuna/study/", "ask"},
    FamilyRule{F::kTrial, "optuna/study/", "tell"},
    FamilyRule{F::kTrial, "optuna/study/_tell.py", "*"},
    FamilyRule{F::kTrial, "optuna/trial/_trial.py", "*"},
    FamilyRule{F::kTrial, "optuna/samplers/", "*"},
    FamilyRule{F::kTrial, "optuna/pruners/", "*"},
    FamilyRule{F::kTrial, "optuna/storages/", "*"},
    FamilyRule{F::kSleep, "/selectors.py", "select"},
    FamilyRule{F::kSleep, "/socket.py", "accept"},
    FamilyRule{F::kSleep, "/socketserver.py", "serve_forever"},
    FamilyRule{F::kSleep, "/asyncio/base_events.py", "_run_once"},
    FamilyRule{F::kSleep, "/subprocess.py", "*wait*"},
    FamilyRule{F::kLock, "/threading.py", "wait"},
    FamilyRule{F::kLock, "/threading.py", "*join"},
    FamilyRule{F::kLock, "/threading.py", "_wait_for_tstate_lock"},
    FamilyRule{F::kLock, "/queue.py", "get"},
    FamilyRule{F::kLock, "/queue.py", "put"},
    FamilyRule{F::kLock, "/multiprocessing/queues.py", "get"},
    FamilyRule{F::kLock, "/multiprocessing/queues.py", "_feed"},
    FamilyRule{F::kLock, "/multiprocessing/resource_sharer.py", "_serve"},
    FamilyRule{F::kLock, "/multiprocessing/connection.py", "*"},
    FamilyRule{F::kLock, "/multiprocessing/popen_fork.py", "*"},
    FamilyRule{F::kLock, "/multiprocessing/synchronize.py", "*"},
    FamilyRule{F::kLock, "/concurrent/futures/_base.py", "result"},
    FamilyRule{F::kLock, "/concurrent/futures/thread.py", "_worker"},
    FamilyRule{F::kLock, "torch/utils/data/_utils/worker.py", "_worker_loop"},
    FamilyRule{F::kLock, "/multiprocessing/pool.py", "_handle_*"},
    FamilyRule{F::kLock, "/multiprocessing/pool.py", "wait"},
    FamilyRule{F::kLock, "/multiprocessing/pool.py", "get"},
    FamilyRule{F::kLock, "/multiprocessing/pool.py", "next"},
    FamilyRule{F::kLock, "/threading.py", "acquire"},
    FamilyRule{F::kLock, "", "acquire()"},
    FamilyRule{F::kLock, "", "flock()"},
    FamilyRule{F::kLock, "", "lockf()"},
};
// clang-format on

bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty() || pattern == "*") return true;
  const bool front = pattern.starts_with('*'), back = pattern.size() > 1 && pattern.ends_with('*');
  const std::string_view core = pattern.substr(front ? 1 : 0, pattern.size() - (front ? 1U : 0U) - (back ? 1U : 0U));
  if (front && back) return name.find(core) != std::string_view::npos;
  if (front) return name.ends_with(core);
  if (back) return name.starts_with(core);
  return name == core;
}

// "torch" of "/usr/lib/python3/dist-packages/torch/__init__.py"
std::string_view module_of(std::string_view file) {
  for (const std::string_view packages : {"site-packages/", "dist-packages/"})
    if (const auto at = file.rfind(packages); at != std::string_view::npos) {
      const std::string_view rest = file.substr(at + packages.size());
      return rest.substr(0, std::min(rest.find('/'), rest.find('.')));
    }
  if (constexpr std::string_view kPackage = "/__init__.py"; file.ends_with(kPackage))
    file.remove_suffix(kPackage.size());
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

// Names that hold a word of a family and are about more, or about something else: train_and_validate, load_checkpoint,
// a Transformer, activations that are computed again (checkpointed_forward).
bool is_about_more(Family family, std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (family == Family::kTransform) return has("transformer") || has("train");
  if (family != Family::kEvaluation && family != Family::kCheckpoint) return false;
  if (has("train") || has("fit")) return true;
  return family == Family::kCheckpoint &&
         (has("load") || has("restore") || has("resume") || has("forward") || has("activation") || has("gradient"));
}

bool is_import(const Frame& frame) { return frame.file.find("importlib") != std::string_view::npos; }

}  // namespace

const FamilyInfo& info(Family family) { return kFamilies[static_cast<std::size_t>(family)]; }
std::span<const FamilyInfo> all_families() { return kFamilies; }
std::span<const FamilyRule> built_in_rules() { return kRules; }

Families::Families(std::vector<FamilyRule> more) : rules_(std::move(more)) {
  rules_.insert(rules_.end(), kRules.begin(), kRules.end());
}

Family Families::family_of(const Frame& frame) const {
  if (is_unnamed(frame)) return Family::kNone;
  const std::string_view name = short_name(frame);
  const bool library = is_library(frame);
  for (const FamilyRule& rule : rules_)
    if (!(rule.of_users && (library || is_about_more(rule.family, name))) && fits(rule.function, name) &&
        frame.file.find(rule.file) != std::string_view::npos)
      return rule.family;
  return Family::kNone;
}

namespace {

// What a forked process does: what lies outside is what its parent was at when it started it.
std::span<const Frame> own_frames(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0;)
    if (short_name(frames[i]) == "_bootstrap" && frames[i].file.ends_with("/multiprocessing/process.py"))
      return frames.subspan(i);
  return frames;
}

// Whether it is at an import: what a library runs meanwhile, its modules and classes, is a part of that.
bool only_imports(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (frames[i].file.find("importlib._bootstrap") != std::string_view::npos) return true;
    if (!is_library(frames[i])) return false;
  }
  return false;
}

bool is_part_of_a_job(Family family) {
  return family == Family::kEvaluation || family == Family::kCheckpoint || family == Family::kImport ||
         family == Family::kDatasetIndex || family == Family::kCompile;
}

// Whether it waits for a program that it has started.
bool runs_a_program(std::span<const Frame> frames) {
  return std::any_of(frames.begin(), frames.end(),
                     [](const Frame& frame) { return frame.file.ends_with("/subprocess.py"); });
}

// Whether it waits for a process that it has started to end.
bool joins_a_process(std::span<const Frame> frames) {
  return runs_a_program(frames) || std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
           return frame.file.ends_with("/multiprocessing/popen_fork.py") && short_name(frame).find("wait") == 0;
         });
}

// Whether asyncio waits for the next event: whichever coroutine that is for, its frames are not on the stack.
bool waits_in_loop(std::span<const Frame> frames) {
  if (frames.size() < 2 || !frames.back().file.ends_with("/selectors.py")) return false;
  const Frame& loop = frames[frames.size() - 2];
  return loop.file.ends_with("/asyncio/base_events.py") && short_name(loop) == "_run_once";
}

// Whether the innermost frames, those of the standard library, are at a pipe, a queue or a barrier between processes.
bool waits_between_processes(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0 && is_library(frames[i]);)
    for (const std::string_view file : {"/multiprocessing/connection.py", "/multiprocessing/queues.py",
                                        "/multiprocessing/synchronize.py", "/multiprocessing/managers.py"})
      if (frames[i].file.ends_with(file)) return true;
  return false;
}

// By the innermost frames, those of the standard library.
ForThread waits_for_thread(std::span<const Frame> frames) {
  std::size_t i = frames.size();
  for (; i > 0 && is_library(frames[i - 1]); --i) {
    const std::string_view name = short_name(frames[i - 1]), file = frames[i - 1].file;
    if (file.ends_with("/queue.py") && name == "get") return ForThread::kResult;
    const bool of_future = name.starts_with("result") || name == "as_completed" || name == "wait";
    if (file.ends_with("/concurrent/futures/_base.py") && of_future) return ForThread::kResult;
    if (file.ends_with("/multiprocessing/pool.py") && (name == "get" || name == "next")) return ForThread::kResult;
  }
  if (i == frames.size() || !frames[i].file.ends_with("/threading.py")) return ForThread::kNo;
  const std::string_view called = frames[i].function;  // by the user's own code
  if (called == "Condition.wait" || called == "Condition.wait_for") return ForThread::kResult;
  return called == "Event.wait" || called == "Thread.join" ? ForThread::kEnd : ForThread::kNo;
}

// What a line calls that is no business of a GPU, by its module, or by its own name where no tensor has a method of
// that name.
bool is_plain_call(std::string_view name) {
  constexpr std::array<std::string_view, 26> kModules{
      "np",      "numpy",  "pd",        "pandas", "json",  "re",     "random", "math",      "pickle",
      "sqlite3", "csv",    "zlib",      "gzip",   "bz2",   "lzma",   "os",     "cv2",       "struct",
      "hashlib", "base64", "itertools", "gc",     "fcntl", "shutil", "socket", "subprocess"};
  constexpr std::array<std::string_view, 40> kNames{
      "append()",    "decode()", "digest()",   "dump()",       "dumps()",     "encode()",     "endswith()",
      "execute()",   "extend()", "fetchall()", "fetchmany()",  "fetchone()",  "findall()",    "finditer()",
      "flush()",     "format()", "fsync()",    "get()",        "hexdigest()", "isinstance()", "items()",
      "join()",      "keys()",   "len()",      "lower()",      "open()",      "read()",       "readline()",
      "readlines()", "recv()",   "replace()",  "setdefault()", "sorted()",    "startswith()", "strip()",
      "update()",    "upper()",  "write()",    "writelines()", "writerow()"};
  const auto dot = name.find('.');
  if (dot != std::string_view::npos &&
      std::find(kModules.begin(), kModules.end(), name.substr(0, dot)) != kModules.end())
    return true;
  return std::find(kNames.begin(), kNames.end(), name.substr(name.rfind('.') + 1)) != kNames.end();
}

// Python's own library, and packages that use no GPU.
bool is_plain_library(const Frame& frame) {
  constexpr std::array<std::string_view, 14> kPackages{"numpy/", "pandas/",   "PIL/",     "cv2/",     "scipy/",
                                                       "yaml/",  "requests/", "urllib3/", "h5py/",    "pyarrow/",
                                                       "nltk/",  "sklearn/",  "skimage/", "networkx/"};
  if (frame.file == "<__array_function__ internals>") return true;  // numpy's wrappers
  const std::string_view library = in_library(frame.file);
  const auto packages = library.find("-packages/");
  if (packages == std::string_view::npos)
    return library.starts_with("/lib/python3") || library.starts_with("lib/python3");
  const std::string_view package = library.substr(packages + std::string_view("-packages/").size());
  return std::any_of(kPackages.begin(), kPackages.end(),
                     [&](std::string_view known) { return package.starts_with(known); });
}

// By the innermost frames: all that the user's own code has called, or what its line calls.
bool is_plain(std::span<const Frame> frames) {
  if (is_unnamed(frames.back())) return false;
  if (is_call(frames.back())) return is_plain_call(frames.back().function);
  std::size_t i = frames.size();
  while (i > 0 && is_library(frames[i - 1]) && is_plain_library(frames[i - 1])) --i;
  return i < frames.size() && i > 0 && !is_library(frames[i - 1]) && !is_unnamed(frames[i - 1]);
}

// The user's function nearest to what it called; one that calls itself was called by another.
std::string caller_of(std::span<const Frame> outside, std::string_view called) {
  for (std::size_t i = outside.size(); i-- > 0;)
    if (!is_library(outside[i]) && !is_unnamed(outside[i]))
      if (std::string name = words(outside[i]); name != called) return name;
  return "";
}

}  // namespace

StackKind Families::kind_of(std::span<const Frame> all) const {
  StackKind kind;
  const std::span<const Frame> frames = own_frames(all);
  if (frames.empty()) return kind;
  std::optional<std::size_t> users, named;  // the innermost ones
  bool waiting = true;                      // all further in only waits
  bool trains = false;                      // a frame further in does: what called it does more than to evaluate
  Family innermost = Family::kNone;
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (is_unnamed(frames[i])) {
      waiting = false;
      continue;
    }
    if (!named) named = i;
    if (!users && !is_library(frames[i]) && !is_call(frames[i])) users = i;
    Family family = family_of(frames[i]);
    // A function of the user's that exchanges something may do more: only where it is at nothing else of his.
    if (family == Family::kPeers && !is_library(frames[i]) && users != i) family = Family::kNone;
    if (family == Family::kEvaluation && !is_library(frames[i]) && trains) family = Family::kNone;
    trains |= family == Family::kBackward || family == Family::kOptimizer ||
              (!is_library(frames[i]) && short_name(frames[i]).starts_with("train"));
    // A thread of a pool waits in its loop, unless the loop has called something else.
    const bool waits = only_waits(family);
    if (family == Family::kNone || (waits && !waiting)) {
      waiting = false;
      continue;
    }
    waiting = waits;
    if (innermost == Family::kNone) innermost = family;
    if (is_part_of_a_job(family)) kind.within = family;
    if (users && i < *users && info(family).rank > info(kind.outside).rank) kind.outside = family;
    if (info(family).rank > info(kind.family).rank) kind.family = family;
  }
  if (only_imports(frames)) kind.family = innermost = Family::kImport;
  kind.busy = info(innermost).busy;
  kind.waits = only_waits(innermost) && kind.family != Family::kLoaderWait && kind.family != Family::kPeers;
  kind.for_child = only_waits(innermost) && joins_a_process(frames);
  kind.in_loop = waits_in_loop(frames);
  kind.of_processes = only_waits(innermost) && waits_between_processes(frames);
  if (only_waits(innermost) && !kind.of_processes) kind.for_thread = waits_for_thread(frames);
  const bool innermost_is_users = users && *users + (is_call(frames.back()) ? 2 : 1) == frames.size();
  kind.own = (kind.family == Family::kNone && innermost_is_users) || (kind.waits && runs_a_program(frames));
  if (kind.own && kind.family == Family::kNone && short_name(frames.back()) == "sleep()") kind.family = Family::kSleep;
  kind.plain = (kind.family == Family::kNone || kind.family == Family::kMetrics) && is_plain(frames);
  if (kind.family == Family::kLoaderWait) {
    kind.where = info(kind.family).label;
  } else if (kind.family == Family::kImport) {
    // From the outside: the module that the user's code asked for, not what that one needs.
    auto module = std::find_if(frames.begin(), frames.end(), is_import);
    while (module != frames.end() && is_import(*module)) ++module;
    const bool known = module != frames.end() && !module->file.starts_with('<');
    kind.where = known ? fmt::format("import {}", module_of(module->file)) : "imports";
  } else {
    if (named) kind.where = words(frames[users.value_or(*named)]);
    if (users)
      kind.file = frames[*users].file, kind.line = frames[*users].line,
      kind.caller = caller_of(frames.first(*users), kind.where);
  }
  return kind;
}

}  // namespace headroom::stacks
