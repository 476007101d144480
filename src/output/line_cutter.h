// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/time.h"

// A stream of output into lines. Pure.
namespace headroom::output {

inline constexpr std::size_t kLongestLine = 4096;  // bytes; what follows in the line is left out
// A line that was not ended for this long stands as it is: a bar that nobody redraws, a prompt.
inline constexpr Nanos kLineSettles = 200 * kMillisecond;

// Lines end at \n, at \r (progress bars return) and where the cursor moves up (bars below one another). Escape
// sequences and other control characters are left out, tabs stay. Empty lines are not handed on.
class LineCutter {
 public:
  // The text is good until it returns. `at` is when the last of it came.
  using Take = std::function<void(std::string_view line, Nanos at)>;

  void take(std::string_view bytes, Nanos at, const Take& line);
  // Hands over what stands unended at `now`; if more of it comes, the whole line is handed over again.
  void settle(Nanos now, const Take& line);
  // Forgets what stands unended: bytes are missing here.
  void lose() { *this = {}; }

 private:
  enum class In : std::uint8_t { kText, kEscape, kControl, kString, kStringEscape };
  void put(char byte, Nanos at, const Take& line);
  void end(const Take& line);

  std::string text_;
  Nanos at_ = 0;  // of the last byte in text_
  In in_ = In::kText;
  bool handed_over_ = false;  // text_, by settle()
};

}  // namespace headroom::output
