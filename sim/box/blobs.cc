// SPDX-License-Identifier: Apache-2.0
#include "sim/box/blobs.h"

#include <cstddef>

// The build names the three files. The assembler reads them into the read-only section.
#define HEADROOM_BLOB(name, file)                                                                           \
  __asm__(".section .rodata\n.balign 16\n.global headroom_blob_" #name "\n.hidden headroom_blob_" #name     \
          "\nheadroom_blob_" #name ":\n.incbin \"" file "\"\n.global headroom_blob_" #name                  \
          "_end\n.hidden headroom_blob_" #name "_end\nheadroom_blob_" #name "_end:\n.byte 0\n.previous\n"); \
  extern "C" const char headroom_blob_##name[], headroom_blob_##name##_end[]

HEADROOM_BLOB(nvml, HEADROOM_BLOB_NVML);
HEADROOM_BLOB(sim, HEADROOM_BLOB_SIM);
HEADROOM_BLOB(python, HEADROOM_BLOB_PYTHON);

namespace headroom::sim {

namespace {
std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }
}  // namespace

std::string_view nvml_library_blob() { return between(headroom_blob_nvml, headroom_blob_nvml_end); }
std::string_view sim_library_blob() { return between(headroom_blob_sim, headroom_blob_sim_end); }
std::string_view python_module_blob() { return between(headroom_blob_python, headroom_blob_python_end); }

}  // namespace headroom::sim
