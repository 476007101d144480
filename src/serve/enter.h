// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "serve/guard.h"
#include "serve/response.h"
#include "serve/route.h"

namespace headroom::serve {

// What becomes of a request: an answer that needs no recording, or what it asks for.
struct Entry {
  std::optional<Response> response;  // refused, a file of the page, that there is nothing
  Route route;                       // else
  bool trusted = false;              // it showed a token
};
[[nodiscard]] Entry enter(const Request& request, const Door& door);

}  // namespace headroom::serve
