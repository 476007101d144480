// SPDX-License-Identifier: Apache-2.0
// A piece of source that may be anything: the name of what it calls is one of its words.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "python/source_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const std::string name = headroom::python::name_of_call(source);
  HR_CHECK(name.empty() || source.find(name + "(") != std::string_view::npos, "it stands before a bracket");
  HR_CHECK(name.find_first_of(" \t\n()[]{}\"'#,=") == std::string::npos, "no argument is in it");
  return 0;
}
