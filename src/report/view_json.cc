// SPDX-License-Identifier: Apache-2.0
#include "report/view_json.h"

#include <array>
#include <charconv>

#include "report/finding_json.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

// With no more digits than tell it from its neighbours: 0.61, not 0.6100000143051147.
double shortest(float value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double same = 0;
  std::from_chars(text.data(), end, same);
  return same;
}

std::string_view ending_name(view::Ending ending) {
  switch (ending) {
    case view::Ending::kRunning:
      return "running";
    case view::Ending::kSucceeded:
      return "succeeded";
    case view::Ending::kOtherwise:
      break;
  }
  return "otherwise";
}

// Instants are offsets from the recording's start.
class Writer {
 public:
  Writer(const Explanation& e, const view::View& view) : e_(e), view_(view) {}

  [[nodiscard]] Json gpus() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < view_.gpus.size(); ++i) list.push_back(gpu(e_.ledger.devices[i], view_.gpus[i]));
    return list;
  }

  [[nodiscard]] static Json accounts(const std::vector<view::Share>& shares) {
    Json list = Json::array();
    for (const view::Share& share : shares) {
      const AccountInfo& account = info(share.account);
      list.push_back(
          {{"account", account.cause}, {"state", account.state}, {"label", account.label}, {"ns", share.ns}});
    }
    return list;
  }

  [[nodiscard]] Json runs() const {
    Json list = Json::array();
    for (const view::Run& run : view_.runs)
      list.push_back({{"task", run.task},
                      {"attempt", run.attempt},
                      {"pid", run.pid > 0 ? Json(run.pid) : Json(nullptr)},
                      {"begin_ns", offset(run.begin)},
                      {"end_ns", run.end ? Json(offset(*run.end)) : Json(nullptr)},
                      {"outcome", run.outcome ? Json(info(*run.outcome).name) : Json(nullptr)},
                      {"reason", run.reason.empty() ? Json(nullptr) : Json(run.reason)},
                      {"gpus", run.gpus},
                      {"peak_gpu_memory_bytes", optional_json(run.peak_gpu_bytes)},
                      {"running", run.running}});
    return list;
  }

  [[nodiscard]] Json processes() const {
    Json list = Json::array();
    for (const view::Process& process : view_.processes) list.push_back(this->process(process));
    return list;
  }

  [[nodiscard]] Json findings() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < e_.findings.size(); ++i) {
      Json finding = finding_json(e_, i);
      finding.erase("claims");  // the spans of `gpus` say where
      list.push_back(std::move(finding));
    }
    return list;
  }

  [[nodiscard]] Nanos offset(Nanos at) const { return at - e_.meta.start; }

 private:
  [[nodiscard]] Json gpu(const Device& device, const view::Gpu& gpu) const {
    Json series = Json::array(), phases = Json::array(), findings = Json::array(), bars = Json::array();
    for (const view::Series& one : gpu.series) series.push_back(this->series(one));
    for (const view::Marks& marks : gpu.phases)
      phases.push_back({{"name", e_.phases[marks.index].name}, {"ns", marks.ns}, {"spans", spans(marks.spans)}});
    for (const view::Marks& marks : gpu.findings)
      findings.push_back({{"finding", marks.index + 1}, {"ns", marks.ns}, {"spans", spans(marks.spans)}});
    for (const view::Bar& bar : gpu.bars)
      bars.push_back({{"begin_ns", offset(bar.begin)},
                      {"end_ns", offset(bar.end)},
                      {"lane", bar.lane},
                      {"run", bar.run},
                      {"count", bar.count},
                      {"ending", ending_name(bar.ending)}});
    return {{"uuid", device.uuid},
            {"index", device.index},
            {"name", device.name},
            {"accounts", accounts(gpu.ledger)},
            {"strip", strip(gpu)},
            {"series", std::move(series)},
            {"phases", std::move(phases)},
            {"findings", std::move(findings)},
            {"lanes", gpu.lanes},
            {"bars", std::move(bars)},
            {"runs_left_out", gpu.runs_left_out}};
  }

  // A column for each account that the GPU has in the window.
  [[nodiscard]] static Json strip(const view::Gpu& gpu) {
    std::array<std::size_t, kAccounts.size()> column{};
    Json accounts = Json::array(), bins = Json::array();
    for (const view::Share& share : gpu.ledger) {
      column[static_cast<std::size_t>(share.account)] = accounts.size();
      accounts.push_back(info(share.account).cause);
    }
    for (const auto& bin : gpu.strip.bins) {
      std::vector<Nanos> row(accounts.size());
      for (const view::Share& share : bin) row[column[static_cast<std::size_t>(share.account)]] = share.ns;
      bins.push_back(std::move(row));
    }
    return {{"accounts", std::move(accounts)}, {"bins", std::move(bins)}};
  }

  [[nodiscard]] static Json series(const view::Series& series) {
    Json low = Json::array(), high = Json::array();
    for (const view::Range& bin : series.bins) {
      low.push_back(bin.samples > 0 ? Json(shortest(bin.low)) : Json(nullptr));
      high.push_back(bin.samples > 0 ? Json(shortest(bin.high)) : Json(nullptr));
    }
    return {{"metric", info(series.metric).name},
            {"unit", info(series.metric).unit},
            {"whole", optional_json(series.whole)},
            {"last", optional_json(series.last)},
            {"low", std::move(low)},
            {"high", std::move(high)}};
  }

  [[nodiscard]] Json spans(const std::vector<view::Span>& spans) const {
    Json list = Json::array();
    for (const view::Span& span : spans) list.push_back({offset(span.begin), offset(span.end), span.ns});
    return list;
  }

  [[nodiscard]] Json process(const view::Process& process) const {
    Json gpus = Json::array();
    for (const auto& on : process.gpus)
      gpus.push_back({{"gpu", on.gpu}, {"memory_bytes", optional_json(on.memory_bytes)}});
    return {
        {"pid", process.pid},
        {"name", process.name},
        {"command", process.command},
        {"in_job", process.in_job},
        {"rank", optional_json(process.rank)},
        {"begin_ns", offset(process.begin)},
        {"end_ns", process.end ? Json(offset(*process.end)) : Json(nullptr)},
        {"cores", optional_json(process.cores)},
        {"cores_now", optional_json(process.cores_now)},
        {"memory_bytes", optional_json(process.rss_bytes)},
        {"gpus", std::move(gpus)},
        {"account", process.account ? Json(info(*process.account).cause) : Json(nullptr)},
        {"label", process.account ? Json(info(*process.account).label) : Json(nullptr)},
        {"phase", process.phase >= 0 ? Json(e_.phases[static_cast<std::size_t>(process.phase)].name) : Json(nullptr)},
        {"where",
         process.where >= 0 ? Json(e_.ledger.places[static_cast<std::size_t>(process.where)]) : Json(nullptr)}};
  }

  const Explanation& e_;
  const view::View& view_;
};

}  // namespace

std::string view_json(const Explanation& e, const view::View& view, std::optional<Nanos> behind,
                      const std::vector<StandingFinding>& now) {
  const Writer writer(e, view);
  const Json answer{{"schema", "headroom.view/1"},
                    {"recording",
                     {{"path", e.path},
                      {"id", e.meta.id},
                      {"origin", e.meta.origin},
                      {"command", e.meta.command},
                      {"start_ns", e.meta.start_realtime == 0 ? Json(nullptr) : Json(e.meta.start_realtime)},
                      {"stop_reason", text_json(e.meta.stop_reason)}}},
                    {"headline", e.headline},
                    {"goes_on", view.goes_on},
                    {"behind_ns", optional_json(behind)},
                    {"span_ns", e.meta.end - e.meta.start},
                    {"begin_ns", writer.offset(view.begin)},
                    {"end_ns", writer.offset(view.end)},
                    {"accounts", Writer::accounts(view.ledger)},
                    {"gpus", writer.gpus()},
                    {"runs", writer.runs()},
                    {"processes", writer.processes()},
                    {"processes_left_out", view.processes_left_out},
                    {"findings", writer.findings()},
                    {"now", standing_json(now, e.meta.start)},
                    {"losses", losses_json(e.losses)}};
  return dump(answer, -1);
}

}  // namespace headroom::report
