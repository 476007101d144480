// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace headroom::cli {

// The token of the user's servers: 32 random bytes in the folder of state, readable by the user only. It is the same
// while one of them runs and for a minute after, so that a page that is open survives a restart; then it is another
// one, so that whoever took the port meanwhile has been sent nothing of worth. A file that others could read is
// replaced.
class ServeToken {
 public:
  [[nodiscard]] static Result<ServeToken> take();
  ~ServeToken();
  ServeToken(ServeToken&&) = default;
  ServeToken& operator=(ServeToken&&) = delete;
  ServeToken(const ServeToken&) = delete;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  ServeToken() = default;
  std::string text_;
  Fd file_;  // locked by those who use it
};

// The token for scrapes, as `authorization.credentials_file` of Prometheus has it. kInvalidInput: too short to be one.
[[nodiscard]] Result<std::string> read_metrics_token(const std::string& path);

// Opens `url`, which holds the token, in the user's browser, by a file that only the user can read: on a command line
// everybody could.
[[nodiscard]] Result<void> open_in_browser(const std::string& url);

}  // namespace headroom::cli
