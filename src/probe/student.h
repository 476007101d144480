// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace headroom::probe {

// The t beyond which Student's distribution has `outside` on both sides together. `degrees` >= 1.
[[nodiscard]] double student_t(int degrees, double outside);

}  // namespace headroom::probe
