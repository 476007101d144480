// SPDX-License-Identifier: Apache-2.0
// A connection's bytes through everything that looks at them before a recording is touched. Input: what a client sends.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "serve/guard.h"
#include "serve/http.h"

namespace {

using headroom::serve::Door;

void must(bool holds) {
  if (!holds) std::abort();
}

// A head ends once, at its end; nothing in it can be another header of the client's.
void must_be_a_head(std::string_view head) {
  must(head.starts_with("HTTP/1.1 "));
  must(head.find("\r\n\r\n") == head.size() - 4);
  for (std::size_t at = head.find('\n'); at != head.npos; at = head.find('\n', at + 1)) must(head[at - 1] == '\r');
  must(head.find('\0') == head.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Door door{
      .hosts = headroom::serve::hosts_of_loopback(), .token = "0123456789abcdef", .metrics_token = "scrape"};
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (;;) {
    const auto parsed = headroom::serve::parse_request(bytes);
    must(!parsed.request || parsed.refused == 0);
    if (parsed.refused != 0) must_be_a_head(head_of(headroom::serve::plain_refusal(parsed.refused), false));
    if (!parsed.request) return 0;
    must(parsed.used > 0 && parsed.used <= headroom::serve::kLongestHead);
    const auto entry = enter(*parsed.request, door);
    if (entry.response) must_be_a_head(head_of(*entry.response, parsed.request->keep_alive));
    // Without a token nothing but /healthz, and with the one for metrics nothing but these.
    const bool knows =
        bytes.substr(0, parsed.used).find(door.token) != bytes.npos || parsed.request->parameter("token") == door.token;
    const bool may_scrape = bytes.substr(0, parsed.used).find(door.metrics_token) != bytes.npos;
    using What = headroom::serve::Route::What;
    const bool metrics = entry.route.what == What::kMetrics || entry.route.what == What::kDcgmMetrics;
    if (!entry.response) must(knows || (may_scrape && metrics));
    if (entry.response && entry.response->status == 200 && parsed.request->path != "/healthz") must(knows);
    std::string problem;
    const auto query = view_query(*parsed.request, problem);
    must(query.bins >= 1 && query.bins <= headroom::serve::kMostBins);
    (void)headroom::serve::takes_openmetrics(parsed.request->accept);
    bytes.remove_prefix(parsed.used);
  }
}
