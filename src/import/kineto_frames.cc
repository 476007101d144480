// SPDX-License-Identifier: Apache-2.0
#include "import/kineto_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace headroom {

namespace {

// clang-format off
constexpr std::array<std::string_view, 71> kOfPython{
    "abc", "argparse", "ast", "asyncio", "bz2", "codecs", "collections", "concurrent", "configparser", "contextlib",
    "copy", "copyreg", "csv", "ctypes", "dataclasses", "datetime", "decimal", "dis", "email", "encodings",
    "enum", "fractions", "functools", "genericpath", "glob", "gzip", "hashlib", "heapq", "hmac", "html",
    "http", "importlib", "inspect", "io", "json", "linecache", "logging", "lzma", "multiprocessing", "os",
    "pathlib", "pickle", "pkgutil", "platform", "posixpath", "queue", "random", "re", "runpy", "selectors",
    "shutil", "signal", "socket", "socketserver", "sqlite3", "ssl", "statistics", "string", "struct", "subprocess",
    "tarfile", "tempfile", "textwrap", "threading", "tokenize", "traceback", "typing", "urllib", "warnings", "weakref",
    "zipfile"};
constexpr std::array<std::string_view, 67> kPackages{
    "PIL", "accelerate", "albumentations", "apex", "bitsandbytes", "boto3", "clearml", "comet_ml", "cupy", "cv2",
    "deepspeed", "dgl", "diffusers", "einops", "fairscale", "fastai", "flash_attn", "flax", "fsspec",
    "grain", "h5py", "horovod", "huggingface_hub", "ignite", "imageio", "jax", "joblib", "keras", "kornia",
    "lightgbm", "lightning", "lightning_fabric", "matplotlib", "mlflow", "monai", "neptune", "numba", "numpy", "optax",
    "optuna", "orbax", "pandas", "peft", "pyarrow", "pytorch_lightning", "ray", "requests", "safetensors", "scipy",
    "sglang", "skimage", "sklearn", "tensorboard", "tensorflow", "timm", "tokenizers", "torch", "torch_geometric",
    "torchaudio", "torchmetrics", "torchvision", "tqdm", "transformers", "triton", "trl", "vllm", "wandb"};
// clang-format on

template <std::size_t N>
bool has(const std::array<std::string_view, N>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

std::string_view before_module(std::string_view path) {
  const std::string_view module = path.substr(0, path.find('/'));
  if (has(kPackages, module)) return "/site-packages/";
  return has(kOfPython, module.substr(0, module.rfind(".py"))) ? "/lib/python3/" : "";
}

}  // namespace

std::string frame_of_kineto(std::string_view name) {
  const auto close = name.find("): ");
  const auto open = close == std::string_view::npos ? close : name.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return "";
  const auto line = parse_number<int>(name.substr(open + 1, close - open - 1));
  const std::string_view path = name.substr(0, open);
  if (!line) return "";
  return fmt::format("{} ({}{}:{})", name.substr(close + 3), before_module(path), path, *line);
}

std::string frame_of_jax(std::string_view name) {
  const auto blank = name.rfind(' ');
  const auto colon = name.rfind(':', blank);
  if (!name.starts_with('$') || blank == std::string_view::npos || colon == std::string_view::npos) return "";
  const auto line = parse_number<int>(name.substr(colon + 1, blank - colon - 1));
  const std::string_view path = name.substr(1, colon - 1);
  if (!line || path.empty()) return "";
  return fmt::format("{} ({}{}:{})", name.substr(blank + 1), before_module(path), path, *line);
}

}  // namespace headroom
