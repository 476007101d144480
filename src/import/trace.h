// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sqlite.h"
#include "import/byte_stream.h"
#include "model/recording.h"

// Traces of profilers: exact intervals of kernels, copies, operators and CUDA calls (docs/design/0018-traces.md). What
// is whole of a trace that was cut is imported; kInvalidInput where it holds no work of a GPU.
namespace headroom {

// A trace of PyTorch's profiler (Kineto, Chrome JSON), by its beginning; and that trace as a recording. Its events are
// read one by one: the memory needed grows with the intervals kept, not with the file.
[[nodiscard]] bool is_kineto(std::string_view head);
[[nodiscard]] Result<Recording> read_kineto(const std::string& name, ByteStream& bytes);

// An export of Nsight Systems: `nsys export --type sqlite`.
[[nodiscard]] bool is_nsys(const std::string& path);  // for a file of SQLite
[[nodiscard]] Result<Recording> read_nsys(const std::string& path);
[[nodiscard]] Result<Recording> read_nsys(const std::string& name, Database& database);

}  // namespace headroom
