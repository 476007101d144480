// SPDX-License-Identifier: Apache-2.0
#include "serve/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/fnv.h"

// HEADROOM_WEB is the folder of the packed files.
// clang-format off
#define HR_EMBED(name, file)                                                     \
  asm(".pushsection .rodata\n"                                                   \
      ".globl hr_page_" #name "\n.globl hr_page_" #name "_end\n"                 \
      "hr_page_" #name ":\n.incbin \"" HEADROOM_WEB "/" file "\"\n"              \
      "hr_page_" #name "_end:\n.byte 0\n.popsection\n");                         \
  extern "C" {                                                                   \
  extern const std::byte hr_page_##name[];                                       \
  extern const std::byte hr_page_##name##_end[];                                 \
  }
// clang-format on

HR_EMBED(index, "index.html.gz")
HR_EMBED(script, "app.js.gz")
HR_EMBED(style, "app.css.gz")
HR_EMBED(icon, "favicon.svg.gz")

namespace headroom::serve {

namespace {

PageFile file_of(std::string_view path, std::string_view type, const std::byte* begin, const std::byte* end) {
  const std::string_view bytes(reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin));
  return {path, type, {begin, end}, fmt::format("\"{:016x}\"", fnv1a(bytes))};
}

}  // namespace

const PageFile* page_file(std::string_view path) {
  static const std::array files{
      file_of("/", "text/html; charset=utf-8", hr_page_index, hr_page_index_end),
      file_of("/app.js", "text/javascript; charset=utf-8", hr_page_script, hr_page_script_end),
      file_of("/app.css", "text/css; charset=utf-8", hr_page_style, hr_page_style_end),
      file_of("/favicon.svg", "image/svg+xml", hr_page_icon, hr_page_icon_end),
  };
  const auto found = std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

bool has_dashboard() { return HEADROOM_DASHBOARD != 0; }

}  // namespace headroom::serve
