// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace headroom {

// `text` as a file may be named: letters of all scripts stay; '/', control characters and what is no UTF-8 become '-'.
// Longer than `most` bytes: the end is a hash of the whole.
[[nodiscard]] std::string file_name_of(std::string_view text, std::size_t most);

// Whether it may stay as it is, whatever its length.
[[nodiscard]] bool fits_file_name(std::string_view text);

// Bytes of the UTF-8 character at the beginning; 0: there is none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace headroom
