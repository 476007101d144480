// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http.h"
#include "serve/route.h"

// Decides who is let in. Other people of the machine can connect to loopback, and so can every page that the user's
// browser shows: neither knows the token, and a page that has led its own name here (DNS rebinding) is told by that
// name.
namespace headroom::serve {

struct Door {
  std::vector<std::string> hosts;  // names by which a browser may call this server, lower-case, without ports
  std::string token;
  std::string metrics_token;  // "": that of all; else it opens /metrics and what is below it, and nothing more
};

// The names of loopback, and what the user adds.
[[nodiscard]] std::vector<std::string> hosts_of_loopback();
// Whether it can be one of those names: letters, digits, '.', '-', '_', or an address of IPv6 in brackets.
[[nodiscard]] bool is_host_name(std::string_view name);

enum class Verdict {
  kCome,           // it may have what it asks for
  kLogin,          // the token came in the query: it is to get a cookie
  kLoginFromSite,  // likewise, by a link on another site's page
  kOtherHost,      // 421
  kOtherSite,      // 403
  kNoToken,        // 401
  kMethod,         // 405
};
[[nodiscard]] Verdict judge(const Request& request, const Door& door);

// The answer to somebody who is not let in, or comes with the token in the address.
[[nodiscard]] Response response_of(Verdict verdict, const Request& request, const Door& door);

// In a time that depends on the lengths alone.
[[nodiscard]] bool same_secret(std::string_view one, std::string_view other);

// The outcome of a request: an answer that needs no recording, or what it asks for.
struct Entry {
  std::optional<Response> response;  // refused, a file of the page, that there is nothing
  Route route;                       // else
  bool trusted = false;              // it showed a token
};
[[nodiscard]] Entry enter(const Request& request, const Door& door);

}  // namespace headroom::serve
