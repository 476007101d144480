// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::serve {

// Of a request what this server looks at; everything comes from outside.
struct Request {
  enum class Method { kGet, kHead, kOther } method = Method::kOther;
  std::string path;   // of the target, as it was sent: nothing in it is decoded
  std::string query;  // what follows the '?', likewise
  std::string host, origin, site, mode, cookie, authorization, accept, if_none_match;  // "": no such header
  bool keep_alive = false;  // the connection may take another one

  // A parameter of the query, percent-decoded; nothing where there is none, or it cannot be decoded.
  [[nodiscard]] std::optional<std::string> parameter(std::string_view name) const;
};

inline constexpr std::size_t kLongestHead = 8192;  // of a request: its line and all its headers

// What came of the bytes so far: a request, a status to refuse it with, or neither yet.
struct Parsed {
  std::optional<Request> request;
  int refused = 0;       // 400, 413, 431, 505
  std::size_t used = 0;  // bytes of the request; what follows is the next one's
};

// The first request of `bytes`. No bodies are taken (413): nobody here reads one.
[[nodiscard]] Parsed parse_request(std::string_view bytes);

}  // namespace headroom::serve
