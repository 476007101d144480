// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "screen/scene.h"

// The lower parts of a picture. Each has `rows` rows at most from `row` on and returns the row after its last.
namespace headroom::screen {

std::size_t put_table(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state);
std::size_t put_finding(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state);

[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);  // without empty ones at the end

}  // namespace headroom::screen
