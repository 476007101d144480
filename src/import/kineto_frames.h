// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace headroom {

// The frame of a `python_function` event, "train.py(12): step", as recordings name frames: "step (train.py:12)". The
// profiler cuts from a path whatever leads to a module (torch/profiler/python_tracer.py): of Python's own modules and
// of known packages a path that tells what they are is put before the rest. "": no function with a file, such as a
// built-in method or a name of a torch.nn.Module.
[[nodiscard]] std::string frame_of_kineto(std::string_view name);
// Likewise of an event of JAX's tracer of Python, "$train.py:12 step".
[[nodiscard]] std::string frame_of_jax(std::string_view name);

}  // namespace headroom
