// SPDX-License-Identifier: Apache-2.0
#include "serve/http.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include "base/strings.h"
#include "report/overview_json.h"

namespace headroom::serve {

namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::empty_body>;
using Fields = Parser::value_type;

std::string text(boost::beast::string_view view) { return {view.data(), view.size()}; }

// Headers that decide who may come in may be there once: two of them are read in two ways by two programs.
bool has_twice(const Fields& fields) {
  return std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
    const auto name = field.name();
    const bool decides = name == http::field::host || name == http::field::origin ||
                         name == http::field::authorization || name == http::field::content_length ||
                         name == http::field::transfer_encoding;
    return decides && fields.count(name) > 1;
  });
}

int refusal_of(const boost::system::error_code& error) { return error == http::error::bad_version ? 505 : 400; }

Request::Method method_of(http::verb verb) {
  if (verb == http::verb::get) return Request::Method::kGet;
  return verb == http::verb::head ? Request::Method::kHead : Request::Method::kOther;
}

Request request_of(const Fields& fields, bool keep_alive) {
  const auto all_cookies = fields.equal_range(http::field::cookie);
  Request request;
  request.method = method_of(fields.method());
  const std::string target = text(fields.target());
  const auto question = std::min(target.find('?'), target.size());
  request.path = target.substr(0, question);
  if (question < target.size()) request.query = target.substr(question + 1);
  request.host = text(fields[http::field::host]);
  request.origin = text(fields[http::field::origin]);
  request.site = text(fields["Sec-Fetch-Site"]);
  request.mode = text(fields["Sec-Fetch-Mode"]);
  for (auto cookie = all_cookies.first; cookie != all_cookies.second; ++cookie)
    request.cookie += (request.cookie.empty() ? "" : "; ") + text(cookie->value());
  request.authorization = text(fields[http::field::authorization]);
  request.accept = text(fields[http::field::accept]);
  request.if_none_match = text(fields[http::field::if_none_match]);
  request.keep_alive = keep_alive;
  return request;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

}  // namespace

std::optional<std::string> Request::parameter(std::string_view name) const {
  for (const std::string_view pair : split(query, '&')) {
    const auto equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    return decoded(equals < pair.size() ? pair.substr(equals + 1) : std::string_view());
  }
  return std::nullopt;
}

// The whole head is there before the parser sees a byte of it: so it is given once, and its limit is ours.
Parsed parse_request(std::string_view bytes) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  Parsed parsed;
  const auto end = bytes.substr(0, kLongestHead).find(kEnd);
  if (end == std::string_view::npos) {
    if (bytes.size() >= kLongestHead) parsed.refused = 431;
    return parsed;
  }
  parsed.used = end + kEnd.size();
  Parser parser;
  parser.header_limit(kLongestHead);
  boost::system::error_code error;
  parser.put(boost::asio::const_buffer(bytes.data(), parsed.used), error);
  if (error || !parser.is_header_done()) {
    parsed.refused = refusal_of(error);
    return parsed;
  }
  const Fields& fields = parser.get();
  const bool has_host = fields.count(http::field::host) == 1;
  if (has_twice(fields) || (!has_host && fields.version() >= 11) || !fields.target().starts_with('/'))
    parsed.refused = 400;
  else if (parser.chunked() || parser.content_length().value_or(0) > 0)
    parsed.refused = 413;
  else
    parsed.request = request_of(fields, parser.keep_alive());
  return parsed;
}

namespace {

struct Status {
  int number;
  std::string_view reason, words;  // words: for people, of what was refused before it was understood
};
constexpr std::array kStatuses{
    Status{200, "OK", ""},
    Status{303, "See Other", ""},
    Status{304, "Not Modified", ""},
    Status{400, "Bad Request", "this is no request of HTTP/1.1 that can be answered"},
    Status{401, "Unauthorized", ""},
    Status{403, "Forbidden", ""},
    Status{404, "Not Found", ""},
    Status{405, "Method Not Allowed", ""},
    Status{408, "Request Timeout", "the request did not come to its end in time"},
    Status{413, "Content Too Large", "no request here has a body"},
    Status{421, "Misdirected Request", ""},
    Status{422, "Unprocessable Content", ""},
    Status{431, "Request Header Fields Too Large", "the request's headers are too long"},
    Status{500, "Internal Server Error", ""},
    Status{503, "Service Unavailable", "too many connections; try again"},
    Status{505, "HTTP Version Not Supported", "only HTTP/1.0 and HTTP/1.1 are spoken here"},
};

const Status& status(int number) {
  const auto found =
      std::find_if(kStatuses.begin(), kStatuses.end(), [&](const Status& row) { return row.number == number; });
  HR_CHECK(found != kStatuses.end(), "a status without words");
  return *found;
}

constexpr std::string_view kCommon =
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";
constexpr std::string_view kPolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n";
// Together with the one in the document.
constexpr std::string_view kWiderPolicy =
    "Content-Security-Policy: frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n";

}  // namespace

std::string head_of(const Response& response, bool keep_alive) {
  const bool has_body = response.status != 304;
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, status(response.status).reason);
  if (has_body)
    head += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", response.type, response.body.bytes.size());
  head += fmt::format("Connection: {}\r\n", keep_alive ? "keep-alive" : "close");
  if (response.etag.empty())
    head += "Cache-Control: no-store\r\n";
  else
    head += fmt::format("Cache-Control: no-cache\r\nETag: {}\r\n", response.etag);
  if (response.gzip && has_body) head += "Content-Encoding: gzip\r\n";
  if (!response.location.empty()) head += fmt::format("Location: {}\r\n", response.location);
  if (!response.cookie.empty())
    head += fmt::format("Set-Cookie: {}={}; HttpOnly; SameSite=Strict; Path=/\r\n", kCookie, response.cookie);
  if (response.status == 401) head += "WWW-Authenticate: Bearer realm=\"headroom\"\r\n";
  if (response.status == 405) head += "Allow: GET, HEAD\r\n";
  if (response.status == 503) head += "Retry-After: 1\r\n";
  head += kCommon;
  head += response.own_policy ? kWiderPolicy : kPolicy;
  return head + "\r\n";
}

std::string head_of_stream() {
  std::string head = fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
      "X-Accel-Buffering: no\r\n",  // nginx passes it on at once
      kEventStream);
  head += kCommon;
  head += kPolicy;
  return head + "\r\n";
}

Response error_response(int number, std::string what, std::string hint) {
  return {.status = number,
          .body = report::error_json({.code = Errc::kIo, .what = std::move(what), .hint = std::move(hint)})};
}

int status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidInput:
      return 400;
    case Errc::kNotFound:
      return 404;
    case Errc::kNoPermission:
      return 403;
    case Errc::kBusy:
      return 503;
    case Errc::kCorrupt:
    case Errc::kUnsupported:
      return 422;
    case Errc::kNoSpace:
    case Errc::kIo:
      break;
  }
  return 500;
}

Response error_response(const Error& error) { return error_response(status_of(error.code), error.what, error.hint); }

Response plain_refusal(int number) {
  return {.status = number, .type = kText, .body = std::string(status(number).words) + "\n"};
}

std::string event_text(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

}  // namespace headroom::serve
