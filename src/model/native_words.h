// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace headroom {

// Advice that names what PyTorch or Python call a thing, as a program without Python (without_python()) has it: with
// CUDA's own calls, and with threads or processes of its own for a DataLoader's.
[[nodiscard]] std::string native_words(std::string advice);

}  // namespace headroom
