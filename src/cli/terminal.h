// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "report/layout.h"

namespace headroom::cli {

// How to lay out text for the terminal (or file) behind `fd`: its width, or COLUMNS, or 80; colour only on a terminal
// without NO_COLOR; block characters where the locale's character set is UTF-8.
[[nodiscard]] report::TextOptions text_options(int fd);

}  // namespace headroom::cli
