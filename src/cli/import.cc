// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/human.h"
#include "base/time.h"
#include "cli/open_recording.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "model/entities.h"
#include "record/shelf.h"
#include "record/writer.h"

namespace headroom::cli {

namespace {

struct ImportVerb {
  std::string file, output;
  bool json = false;
};

Result<std::string> output_path(const ImportVerb& options) {
  if (!options.output.empty()) return options.output;
  HR_TRY(const Shelf shelf, Shelf::open());
  return shelf.new_path({options.file}, realtime_now());
}

Result<void> write_recording(const Recording& recording, const std::string& path) {
  WriterOptions options;
  options.when_full = WriterOptions::WhenFull::kWait;
  HR_TRY(auto writer, Writer::create(path, options));
  replay(recording, *writer);
  return writer->close();
}

std::size_t rows_of(const Recording& recording) {
  std::size_t rows = 0;
  for (const SourceId id : recording.all(SourceKind::kGpu))
    rows += recording.tracks[static_cast<std::size_t>(id)].at.size();
  return rows;
}

nlohmann::ordered_json to_json(const Recording& recording, const std::string& path) {
  nlohmann::ordered_json json{{"schema", "headroom.import/1"},         {"recording", path},
                              {"origin", recording.meta.origin},       {"rows", rows_of(recording)},
                              {"start_ns", recording.meta.start},      {"end_ns", recording.meta.end},
                              {"interval_ns", recording.meta.interval}};
  json["devices"] = nlohmann::ordered_json::array();
  for (const SourceId id : recording.all(SourceKind::kGpu)) {
    const auto& source = recording.sources[static_cast<std::size_t>(id)];
    const Device device = device_of(source);
    json["devices"].push_back({{"uuid", device.uuid},
                               {"index", device.index},
                               {"name", device.name},
                               {"rows", recording.tracks[static_cast<std::size_t>(id)].at.size()}});
  }
  json["losses"] = nlohmann::ordered_json::array();
  for (const Loss& loss : recording.losses)
    json["losses"].push_back({{"what", loss.what},
                              {"count", loss.count},
                              {"severity", severity_name(loss.severity)},
                              {"detail", loss.detail}});
  return json;
}

void print_text(const Recording& recording, const std::string& path) {
  const std::size_t width = text_options(STDOUT_FILENO).width;
  const auto& meta = recording.meta;
  const std::size_t gpus = recording.all(SourceKind::kGpu).size();
  fmt::print("{} rows of {} GPU{} over {}, {} apart ({})\n", human_count(static_cast<std::int64_t>(rows_of(recording))),
             gpus, gpus == 1 ? "" : "s", human_duration(meta.end - meta.start), human_duration(meta.interval),
             meta.origin);
  for (const Loss& loss : recording.losses)
    fmt::print("{}", report::wrap(fmt::format("{} ({}): {}", loss.what, loss.count, loss.detail), width, "  ", "    "));
  fmt::print("{}\n", path);
}

Result<void> import_log_file(const ImportVerb& options, const ImportOptions& import) {
  HR_TRY(const OpenedRecording opened, open_recording(options.file, import));
  HR_TRY(const std::string path, output_path(options));
  HR_TRYV(write_recording(opened.recording, path));
  if (options.json)
    fmt::print("{}\n", to_json(opened.recording, path).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    print_text(opened.recording, path);
  return {};
}

}  // namespace

Action declare_import(VerbInput input) {
  auto options = std::make_shared<ImportVerb>();
  input.app.add_option("file", options->file, "a log of nvidia-smi, dmon or a monitor of your own, or JSONL")
      ->required();
  input.app.add_option("--output,-o", options->output, "the recording to write (default: where recordings lie)");
  input.app.add_flag("--json", options->json, "machine-readable, schema headroom.import/1");
  auto import = declare_import_options(input.app);
  return [options, import] {
    const auto done = import_log_file(*options, *import);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli
