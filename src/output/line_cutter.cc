// SPDX-License-Identifier: Apache-2.0
#include "output/line_cutter.h"

#include <utility>

namespace headroom::output {

namespace {
constexpr char kEscape = '\x1b', kBell = '\a', kDelete = '\x7f';
}  // namespace

void LineCutter::take(std::string_view bytes, Nanos at, const Take& line) {
  for (const char byte : bytes) put(byte, at, line);
}

void LineCutter::put(char byte, Nanos at, const Take& line) {
  switch (in_) {
    case In::kText:
      if (byte == '\n' || byte == '\r') {
        end(line);
      } else if (byte == kEscape) {
        in_ = In::kEscape;
      } else if ((static_cast<unsigned char>(byte) >= ' ' || byte == '\t') && byte != kDelete) {
        if (text_.size() == kLongestLine) return;
        text_ += byte;
        at_ = at;
        handed_over_ = false;
      }
      return;
    case In::kEscape:  // ECMA-48: CSI "[", and strings that end with BEL or ST
      in_ = byte == '['                                                      ? In::kControl
            : std::string_view("]PX^_").find(byte) != std::string_view::npos ? In::kString
                                                                             : In::kText;
      return;
    case In::kControl:
      if (byte < '@' || byte > '~') {
        if (byte == '\n' || byte == '\r') in_ = In::kText;  // no sequence after all
        return;
      }
      in_ = In::kText;
      if (byte == 'A' || byte == 'F') end(line);  // the cursor goes up
      return;
    case In::kString:
      if (byte == kEscape) in_ = In::kStringEscape;
      if (byte == kBell || byte == '\n') in_ = In::kText;
      return;
    case In::kStringEscape:
      in_ = In::kText;
      return;
  }
}

void LineCutter::end(const Take& line) {
  const bool fresh = !std::exchange(handed_over_, false);
  if (fresh && !text_.empty()) line(text_, at_);
  text_.clear();
}

void LineCutter::settle(Nanos now, const Take& line) {
  if (text_.empty() || handed_over_ || now - at_ < kLineSettles) return;
  handed_over_ = true;
  line(text_, at_);
}

}  // namespace headroom::output
