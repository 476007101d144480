// SPDX-License-Identifier: Apache-2.0
#include "serve/enter.h"

#include "serve/page.h"

namespace headroom::serve {

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
