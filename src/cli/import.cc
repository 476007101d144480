// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "base/human.h"
#include "base/time.h"
#include "cli/environment.h"
#include "cli/open_recording.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "record/shelf.h"
#include "record/writer.h"
#include "report/recordings.h"

namespace headroom::cli {

namespace {

struct ImportVerb {
  std::string file, output;
  bool json = false;
};

Result<std::string> output_path(const ImportVerb& options) {
  if (!options.output.empty()) return options.output;
  HR_TRY(const Shelf shelf, users_shelf());
  return shelf.new_path({options.file}, realtime_now());
}

void print_text(const PackedRecording& packed, const std::string& path) {
  const Recording& recording = packed.recording;
  const std::size_t width = text_options(STDOUT_FILENO).width;
  const auto& meta = recording.meta;
  const std::size_t gpus = recording.all(SourceKind::kGpu).size();
  const std::string of = gpus > 0 ? count_of(gpus, "GPU") : count_of(recording.all(SourceKind::kMarks).size(), "rank");
  const std::string span = human_duration(meta.end - meta.start);
  if (meta.interval > 0)
    print("{} of {} over {}, {} apart ({})\n", count_of(report::gpu_rows(packed), "row"), of, span,
          human_duration(meta.interval), meta.origin);
  else
    print("{} over {} ({})\n", of, span, meta.origin);
  for (const Loss& loss : recording.losses)
    put(report::wrap(fmt::format("{} ({}): {}", loss.what, loss.count, loss.detail), width, "  ", "    "));
  print("{}\n", path);
}

Result<void> import_log_file(const ImportVerb& options, const ImportOptions& import) {
  HR_TRY(const OpenedPacked opened, open_packed(options.file, import));
  HR_TRY(const std::string path, output_path(options));
  HR_TRYV(write_recording(opened.recording, path));
  if (options.json)
    put(report::import_to_json(opened.recording, path));
  else
    print_text(opened.recording, path);
  return {};
}

}  // namespace

Action declare_import(VerbInput input) {
  auto options = std::make_shared<ImportVerb>();
  input.app.add_option("LOG", options->file, "a log, packed by gzip or zstd or not; '-': standard input")->required();
  input.app.add_option("--output,-o", options->output, "the recording to write (default: where recordings lie)")
      ->type_name("FILE");
  input.app.add_flag("--json", options->json, "machine-readable, schema headroom.import/1");
  auto import = declare_import_options(input.app);
  input.app.footer("\nWhat can be read, told by the content:\n" + formats_text());
  return [options, import] {
    const auto done = import_log_file(*options, *import);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli
