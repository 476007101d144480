// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace headroom::serve {

// The parts of a request that this server looks at; everything comes from outside.
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

// The result of parsing the bytes so far: a request, a status to refuse it with, or neither yet.
struct Parsed {
  std::optional<Request> request;
  int refused = 0;       // 400, 413, 431, 505
  std::size_t used = 0;  // bytes of the request; what follows is the next one's
};

// The first request of `bytes`. No bodies are taken (413): nobody here reads one.
[[nodiscard]] Parsed parse_request(std::string_view bytes);

// Bytes that somebody owns: a text of this answer or of a cache, or a part of this program.
struct Body {
  Body() = default;
  Body(std::string text) : owner(std::make_shared<const std::string>(std::move(text))), bytes(*owner) {}
  Body(std::shared_ptr<const std::string> text) : owner(std::move(text)), bytes(*owner) {}
  Body(std::span<const std::byte> of_program)
      : bytes(reinterpret_cast<const char*>(of_program.data()), of_program.size()) {}
  std::shared_ptr<const std::string> owner;
  std::string_view bytes;
};

inline constexpr std::string_view kCookie = "headroom_token";

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kText = "text/plain; charset=utf-8";
inline constexpr std::string_view kHtml = "text/html; charset=utf-8";
inline constexpr std::string_view kEventStream = "text/event-stream";

// No text from outside comes into a head: what may stand there are our own constants, numbers, and the token.
struct Response {
  int status = 200;
  std::string_view type = kJson;
  Body body;
  std::string_view etag;      // "": it is not to be kept
  bool gzip = false;          // the body is
  bool own_policy = false;    // an HTML document whose own content policy is the narrower one
  std::string_view cookie;    // the token, to be kept by the browser
  std::string_view location;  // of a redirection
};
[[nodiscard]] std::string head_of(const Response& response, bool keep_alive);
[[nodiscard]] std::string head_of_stream();

// "headroom.error/1"
[[nodiscard]] Response error_response(int status, std::string what, std::string hint = "");
[[nodiscard]] int status_of(Errc code);
[[nodiscard]] Response error_response(const Error& error);
// Refuses a request that could not be read (400, 408, 413, 431, 505), or one too many (503).
[[nodiscard]] Response plain_refusal(int status);

// An event of a stream; `data` is one line.
[[nodiscard]] std::string event_text(std::string_view name, std::string_view data);

}  // namespace headroom::serve
