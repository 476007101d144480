// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "cli/batch_ask.h"
#include "cli/output.h"
#include "cli/study.h"
#include "exposition/formats.h"
#include "report/overview_json.h"

namespace headroom::cli {

namespace {

using What = serve::Route::What;
using serve::Response;

constexpr std::size_t kMostAsked = 64;

bool is_metrics(What what) { return what == What::kMetrics || what == What::kDcgmMetrics; }

}  // namespace

Dashboard::Dashboard(Loop& loop, Catalog catalog, Library library, serve::Door door, bool dcgm)
    : loop_(loop),
      catalog_(std::move(catalog)),
      library_(std::move(library)),
      door_(std::move(door)),
      dcgm_(dcgm),
      worker_(loop) {}

Result<void> Dashboard::open(Fd listening) {
  HR_TRY(connections_, serve::Connections::open(loop_, std::move(listening),
                                                [this](Id id, const serve::Request& request) { handle(id, request); }));
  connections_->when_empty([this] { nobody_is_there(); });
  return {};
}

void Dashboard::handle(Id id, const serve::Request& request) {
  serve::Entry entry = serve::enter(request, door_);
  if (entry.trusted) connections_->trust(id);
  if (entry.response) return connections_->answer(id, std::move(*entry.response));
  if (entry.route.what == What::kEvents) return listen(id);
  ask(id, entry.route, request);
}

void Dashboard::ask(Id id, const serve::Route& route, const serve::Request& request) {
  if (asked_ >= kMostAsked)
    return connections_->answer(id, serve::error_response(503, "too much was asked at once", "try again"));
  ++asked_;
  auto response = std::make_shared<Response>();
  worker_.run([this, route, request, response] { *response = answer(route, request); },
              [this, id, response] {
                --asked_;
                connections_->answer(id, std::move(*response));
              });
}

void Dashboard::listen(Id id) {
  connections_->stream(id, "retry: 2000\n" + serve::event_text("hello", fmt::format(R"({{"version":"{}","now_ns":{}}})",
                                                                                    HEADROOM_VERSION, realtime_now())));
  if (watch_ == 0 && !looking_) look();
}

void Dashboard::watch(Nanos in) {
  watch_ = loop_.after(in, [this] {
    watch_ = 0;
    look();
  });
}

void Dashboard::look() {
  if (connections_->streams() == 0) return;
  looking_ = true;
  auto events = std::make_shared<std::string>();
  auto cost = std::make_shared<Nanos>();
  worker_.run(
      [this, events, cost] {
        try {
          *events = events_of(look_again());
        } catch (const std::exception& error) {
          say(fmt::format("looking for what changed: {}", error.what()), "it is tried again");
        }
        *cost = look_cost_;
      },
      [this, events, cost] {
        looking_ = false;
        if (!events->empty()) connections_->send(*events);
        if (connections_->streams() > 0) watch(std::max(kLookEvery, kLookCostParts * *cost));
      });
}

void Dashboard::nobody_is_there() {
  loop_.cancel(watch_);
  watch_ = 0;
  worker_.run([this] { library_.forget(); }, [] {});
}

Catalog::Changes Dashboard::look_again() {
  const Nanos cpu = thread_cpu_now();
  Catalog::Changes changes = catalog_.look([this](const std::string& path) { return library_.due(path); });
  for (const std::string& key : changes.recordings)  // that its writer has died is not in the file
    if (const auto* recording = catalog_.recording(key); !recording->goes_on()) library_.forget(recording->path());
  for (auto& key : unseen_.recordings) changes.recordings.push_back(std::move(key));
  for (auto& key : unseen_.batches) changes.batches.push_back(std::move(key));
  for (auto& key : unseen_.studies) changes.studies.push_back(std::move(key));
  changes.list = changes.list || unseen_.list;
  unseen_ = {};
  look_cost_ = thread_cpu_now() - cpu;
  return changes;
}

std::string Dashboard::events_of(const Catalog::Changes& changes) const {
  std::string events;
  if (changes.list) events += serve::event_text("overview", "{}");
  for (const std::string& key : changes.recordings) {
    const Catalog::Recording* recording = catalog_.recording(key);
    if (recording == nullptr || !recording->shown.entry.summary) continue;
    const RecordingMeta& meta = recording->shown.entry.summary->meta;
    events +=
        serve::event_text("recording", fmt::format(R"({{"key":"{}","duration_ns":{},"goes_on":{}}})", key,
                                                   std::max<Nanos>(0, meta.end - meta.start), recording->goes_on()));
  }
  for (const std::string& key : changes.batches)
    events += serve::event_text("batch", fmt::format(R"({{"key":"{}"}})", key));
  for (const std::string& key : changes.studies)
    events += serve::event_text("study", fmt::format(R"({{"key":"{}"}})", key));
  return events;
}

// For who asks: what is there now, or was so long ago.
void Dashboard::refresh(Nanos age) {
  if (catalog_.looked_at() != 0 && boottime_now() - catalog_.looked_at() < age) return;
  unseen_ = look_again();
  constexpr std::size_t kMost = 1000;  // nobody may be listening
  if (unseen_.recordings.size() > kMost) unseen_.recordings.clear();
  if (unseen_.batches.size() > kMost) unseen_.batches.clear();
  if (unseen_.studies.size() > kMost) unseen_.studies.clear();
}

Response Dashboard::answer(const serve::Route& route, const serve::Request& request) {
  try {
    auto response = answer_of(route, request);
    return response ? std::move(*response) : serve::error_response(response.error());
  } catch (const std::bad_alloc&) {
    library_.forget();
    return serve::error_response(503, "not enough memory for this",
                                 "headroom why and headroom report may do with less");
  }
}

Result<std::string> Dashboard::path_of(const std::string& key) {
  const Catalog::Recording* recording = catalog_.recording(key);
  if (recording == nullptr) {
    refresh(kLookEvery);
    recording = catalog_.recording(key);
  }
  const auto vanished = [](const std::string& path) {
    return fail(Errc::kNotFound, fmt::format("{} is not there any more", path),
                "it was moved, renamed or removed: what is there now is in the list (headroom recordings)");
  };
  if (recording == nullptr) {
    const std::string* gone = catalog_.gone(key);
    if (gone != nullptr) return vanished(*gone);
    return fail(Errc::kNotFound, "there is no such recording", "/api/overview lists them");
  }
  std::error_code failed;
  if (!std::filesystem::exists(recording->path(), failed)) return vanished(recording->path());
  return recording->path();
}

Result<Library::Text> Dashboard::of_recording(const serve::Route& route, const serve::Request& request) {
  HR_TRY(const std::string path, path_of(route.key));
  switch (route.what) {
    case What::kView:
    case What::kStacks:
    case What::kReport: {
      std::string problem;
      const serve::ViewQuery query = serve::view_query(request, problem);
      if (!problem.empty()) return fail(Errc::kInvalidInput, problem, "docs/serve.md says what can be asked");
      if (route.what == What::kReport) return library_.report(path, query);
      return route.what == What::kView ? library_.view(path, query) : library_.stacks(path, query);
    }
    case What::kWhy:
      return library_.why(path);
    case What::kPlan:
      return library_.plan(path);
    case What::kComparison: {
      const auto other = request.parameter("with");
      if (!other) return fail(Errc::kInvalidInput, "with names no recording", "docs/serve.md says what can be asked");
      HR_TRY(const std::string with, path_of(*other));
      return library_.comparison(path, with);
    }
    default:
      return library_.trace(path);
  }
}

Result<Response> Dashboard::metrics(const serve::Route& route, const serve::Request& request) {
  const bool dcgm = route.what == What::kDcgmMetrics;
  if (dcgm && !dcgm_)
    return fail(Errc::kNotFound, "dcgm-exporter's names are not served", "headroom serve --dcgm serves them");
  const bool open_metrics = !dcgm && serve::takes_openmetrics(request.accept);
  Response response{.type = open_metrics ? exposition::kOpenMetricsType : exposition::kPrometheusType};
  constexpr Nanos kOldest = 5 * kSecond, kScrapeParts = 2500;  // as of the recording itself
  refresh(std::clamp(kScrapeParts * look_cost_, kLookEvery, kOldest));
  std::string path;
  if (const auto key = request.parameter("recording")) {
    HR_TRY(path, path_of(*key));
  } else if (const Catalog::Recording* live = catalog_.newest_live()) {
    path = live->path();
  } else {  // there is nothing to tell of now, and that is no error
    response.body = std::string(open_metrics ? "# EOF\n" : "");
    return response;
  }
  using Form = Library::Metrics;
  HR_TRY(response.body, library_.metrics(path, dcgm           ? Form::kDcgm
                                               : open_metrics ? Form::kOpenMetrics
                                                              : Form::kPrometheus));
  return response;
}

Result<Response> Dashboard::answer_of(const serve::Route& route, const serve::Request& request) {
  if (is_metrics(route.what)) return metrics(route, request);
  if (route.what == What::kOverview) {
    refresh(kLookEvery);
    return Response{.body = report::overview_json(catalog_.overview())};
  }
  if (route.what == What::kBatch) {
    const std::string* folder = catalog_.batch_folder(route.key);
    if (folder == nullptr) refresh(kLookEvery), folder = catalog_.batch_folder(route.key);
    if (folder == nullptr) return fail(Errc::kNotFound, "there is no such batch", "/api/overview lists them");
    HR_TRY(std::string status, batch_status_json(*folder));
    return Response{.body = std::move(status)};
  }
  if (route.what == What::kStudy || route.what == What::kStudyReport) {
    const std::string* storage = catalog_.study_storage(route.key);
    if (storage == nullptr) return fail(Errc::kNotFound, "there is no such study", "/api/overview lists them");
    if (route.what == What::kStudyReport) {
      HR_TRY(std::string page, study_page(*storage, request.parameter("study")));
      return Response{.type = serve::kHtml, .body = std::move(page), .own_policy = true};
    }
    HR_TRY(std::string studies, studies_json(*storage));
    return Response{.body = std::move(studies)};
  }
  HR_TRY(const Library::Text text, of_recording(route, request));
  if (route.what == What::kReport || route.what == What::kComparison)
    return Response{.type = serve::kHtml, .body = text, .own_policy = true};
  return Response{.body = text};
}

}  // namespace headroom::cli
