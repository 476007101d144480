// SPDX-License-Identifier: Apache-2.0
#include "serve/request.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include "base/strings.h"

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

}  // namespace headroom::serve
