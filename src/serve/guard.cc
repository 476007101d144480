// SPDX-License-Identifier: Apache-2.0
#include "serve/guard.h"

#include <algorithm>

#include "base/strings.h"
#include "serve/page.h"

namespace headroom::serve {

namespace {

// "localhost:7117", "[::1]:80": the name, lower-case; "" where it is none.
std::string name_of(std::string_view host) {
  const auto bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) return "";
  const auto colon = std::min(host.find(':', bracket), host.size());
  const std::string_view port = host.substr(std::min(colon + 1, host.size()));
  if (colon < host.size() && !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return "";
  return lower(host.substr(0, colon));
}

bool is_ours(const std::string& host, const Door& door) {
  const std::string name = name_of(host);
  return !name.empty() && std::find(door.hosts.begin(), door.hosts.end(), name) != door.hosts.end();
}

// A browser says so when a page of another origin asks; other programs say nothing.
bool of_other_site(const Request& request) {
  if (!request.origin.empty() && request.origin != "http://" + request.host &&
      request.origin != "https://" + request.host)
    return true;
  return !request.site.empty() && request.site != "same-origin" && request.site != "none";
}

bool is_metrics(std::string_view path) { return path == "/metrics" || path.starts_with("/metrics/"); }

std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (lower(authorization.substr(0, kScheme.size())) != kScheme) return {};
  return trim(authorization.substr(kScheme.size()));
}

bool knows_token(const Request& request, const Door& door) {
  const std::string_view bearer = bearer_of(request.authorization);
  bool known = same_secret(bearer, door.token);
  if (is_metrics(request.path) && !door.metrics_token.empty()) known |= same_secret(bearer, door.metrics_token);
  for (const std::string_view pair : split(request.cookie, ';')) {
    const std::string_view cookie = trim(pair);
    if (cookie.starts_with(kCookie) && cookie.substr(kCookie.size()).starts_with('='))
      known |= same_secret(cookie.substr(kCookie.size() + 1), door.token);
  }
  return known;
}

}  // namespace

std::vector<std::string> hosts_of_loopback() { return {"127.0.0.1", "[::1]", "localhost"}; }

bool is_host_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  const auto of_ipv6 = [](char c) {
    return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' || c == '.';
  };
  if (name.size() > 2 && name.starts_with('[') && name.ends_with(']'))
    return std::all_of(name.begin() + 1, name.end() - 1, of_ipv6);
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), plain);
}

bool same_secret(std::string_view one, std::string_view other) {
  if (one.empty() || one.size() != other.size()) return false;
  volatile unsigned char differ = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    differ = static_cast<unsigned char>(differ |
                                        (static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i])));
  return differ == 0;
}

Verdict judge(const Request& request, const Door& door) {
  if (!is_ours(request.host, door)) return Verdict::kOtherHost;
  // Of what other sites' pages do, only this passes: they show the dashboard itself, in a tab of its own.
  const bool other_site = of_other_site(request);
  const bool visit = request.path == "/" && request.origin.empty() && request.mode == "navigate";
  if (other_site && !visit) return Verdict::kOtherSite;
  if (request.method == Request::Method::kOther) return Verdict::kMethod;
  if (request.path == "/healthz" && !other_site) return Verdict::kCome;
  if (request.path == "/") {
    const auto token = request.parameter("token");
    if (token && same_secret(*token, door.token)) return other_site ? Verdict::kLoginFromSite : Verdict::kLogin;
  }
  return knows_token(request, door) ? Verdict::kCome : Verdict::kNoToken;
}

namespace {

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

namespace {

Response file_response(const Request& request) {
  const PageFile* file = page_file(request.path);
  if (file == nullptr) return error_response(404, "there is no such file");
  // Only packed: whatever shows this page can unpack it.
  const bool known = request.if_none_match.find(file->etag) != std::string::npos;
  return {.status = known ? 304 : 200, .type = file->type, .body = file->gzip, .etag = file->etag, .gzip = true};
}

}  // namespace

Entry enter(const Request& request, const Door& door) {
  const Verdict verdict = judge(request, door);
  const bool trusted = verdict == Verdict::kLogin || verdict == Verdict::kLoginFromSite ||
                       (verdict == Verdict::kCome && request.path != "/healthz");
  if (verdict != Verdict::kCome)
    return {.response = response_of(verdict, request, door), .route = {}, .trusted = trusted};
  Entry entry{.response = {}, .route = route_of(request.path), .trusted = trusted};
  switch (entry.route.what) {
    case Route::What::kHealth:
      entry.response = {.type = kText, .body = std::string("ok\n")};
      break;
    case Route::What::kFile:
      entry.response = file_response(request);
      break;
    case Route::What::kNothing:
      entry.response = error_response(404, "there is nothing here", "/ is the dashboard, docs/serve.md lists the rest");
      break;
    default:
      break;
  }
  return entry;
}

}  // namespace headroom::serve
