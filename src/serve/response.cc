// SPDX-License-Identifier: Apache-2.0
#include "serve/response.h"

#include <algorithm>
#include <array>

#include "report/overview_json.h"

namespace headroom::serve {

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

constexpr std::string_view kHowIn =
    "This is Headroom. Who knows its token may come in.\n\n"
    "Open the address that headroom serve printed, which ends with the token; headroom serve --open opens it.\n"
    "If you are in already and came here by a link, reload this page.\n"
    "Programs send it as a header, Authorization: Bearer TOKEN.\n";

// A cookie that no other site's page may send is not sent where another site's page led, not even behind a redirection;
// where this page leads, it is.
constexpr std::string_view kGoOn =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/\">"
    "<title>Headroom</title><p><a href=\"/\">Go on to Headroom</a></p></html>\n";

bool wants_json(const Request& request) { return request.path.starts_with("/api/"); }

Response refuse(int number, const Request& request, std::string what, std::string hint) {
  if (wants_json(request)) return error_response(number, std::move(what), std::move(hint));
  return {.status = number, .type = kText, .body = what + (hint.empty() ? "" : "\n" + hint) + "\n"};
}

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

Response response_of(Verdict verdict, const Request& request, const Door& door) {
  switch (verdict) {
    case Verdict::kCome:
      break;
    case Verdict::kLogin:
      return {.status = 303, .type = kText, .body = std::string("/\n"), .cookie = door.token, .location = "/"};
    case Verdict::kLoginFromSite:
      return {.status = 200, .type = kHtml, .body = std::string(kGoOn), .cookie = door.token};
    case Verdict::kOtherHost:
      return refuse(421, request, "this server is not known by the name under which it was called",
                    "headroom serve --allow-host NAME lets a name in");
    case Verdict::kOtherSite:
      return refuse(403, request, "a page of another site asked", "");
    case Verdict::kNoToken:
      if (wants_json(request))
        return error_response(401, "the token is missing or wrong", "open the address that headroom serve printed");
      return {.status = 401, .type = kText, .body = std::string(kHowIn)};
    case Verdict::kMethod:
      return refuse(405, request, "nothing can be changed here: GET and HEAD are all there is", "");
  }
  return error_response(404, "there is nothing here", "/ is the dashboard");
}

std::string event_text(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

}  // namespace headroom::serve
