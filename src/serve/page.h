// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace headroom::serve {

// A file of the dashboard, which is a part of this program: packed by gzip when it was built.
struct PageFile {
  std::string_view path, type;
  std::span<const std::byte> gzip;
  std::string etag;  // with its quotes: another one for other content
};
// nullptr: there is none of that path.
[[nodiscard]] const PageFile* page_file(std::string_view path);

// Whether it is there: else its first page says that this program was built without it.
[[nodiscard]] bool has_dashboard();

}  // namespace headroom::serve
