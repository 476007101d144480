// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>

#include "report/layout.h"

namespace headroom::cli {

// How to lay out text for the terminal (or file) behind `fd`: its width, or COLUMNS, or 80, and colour only on a
// terminal, unless the configuration says otherwise; no colour with NO_COLOR; block characters where the locale is
// UTF-8.
[[nodiscard]] report::TextOptions text_options(int fd);

// Of the terminal behind `fd`; nothing where it does not say.
[[nodiscard]] std::optional<std::size_t> rows_of(int fd);

// Whether lines can be painted over there: on a terminal, and not on a dumb one.
[[nodiscard]] bool can_repaint(int fd);

}  // namespace headroom::cli
