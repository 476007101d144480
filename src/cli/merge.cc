// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/human.h"
#include "base/visible.h"
#include "cli/output.h"
#include "cli/several.h"
#include "cli/verbs.h"
#include "model/parts.h"
#include "record/writer.h"
#include "report/recordings.h"

namespace headroom::cli {

namespace {

struct MergeVerb {
  std::vector<std::string> recordings;
  std::string output;
  bool json = false, skip_unreadable = false;
};

void print_text(const Recording& all, const std::string& path) {
  const std::vector<RecordingMeta> metas = metas_of_parts(all);
  std::vector<std::string> machines;
  for (const PartName& name : part_names(metas))
    if (std::find(machines.begin(), machines.end(), name.machine) == machines.end()) machines.push_back(name.machine);
  print("{} of {}, {}, {}\n", count_of(metas.size(), "recording"), count_of(machines.size(), "machine"),
        count_of(all.all(SourceKind::kGpu).size(), "GPU"), human_duration(all.meta.end - all.meta.start));
  print("{}\n", path);
}

Result<void> merge(const MergeVerb& options, const ImportOptions& import) {
  std::error_code ignored;
  if (std::filesystem::exists(options.output, ignored))
    return fail(Errc::kInvalidInput, fmt::format("{} exists already", options.output),
                "name another file: a recording takes the place of nothing");
  HR_TRY(const std::vector<std::string> paths, several(options.recordings));
  if (paths.size() == 1)
    return fail(Errc::kInvalidInput, fmt::format("there is one recording alone, {}: nothing to merge", paths.front()),
                fmt::format("headroom export {} --format hrec -o COPY.hrec copies it", typed_word(paths.front())));
  HR_TRY(OpenedRecording opened,
         open_merged(paths, import, {}, options.skip_unreadable ? Unreadable::kLeaveOut : Unreadable::kRefuse));
  if (!has_parts(opened.recording))
    return fail(Errc::kInvalidInput, fmt::format("only {} can be read: nothing to merge", opened.path));
  HR_TRYV(write_recording(opened.recording, options.output));
  if (options.json)
    put(report::import_to_json(not_packed(std::move(opened.recording)), options.output));
  else
    print_text(opened.recording, options.output);
  return {};
}

}  // namespace

Action declare_merge(VerbInput input) {
  auto options = std::make_shared<MergeVerb>();
  auto& app = input.app;
  app.add_option("RECORDINGS", options->recordings,
                 "two or more: folders, all of whose .hrec files are meant, and " + std::string(kRecordingWords))
      ->required()
      ->type_name("FILE|DIR");
  app.add_option("-o,--output", options->output, "the recording to write; it takes the place of nothing")
      ->required()
      ->type_name("FILE");
  app.add_flag("--skip-unreadable", options->skip_unreadable, "leave out what cannot be read, and say so");
  app.add_flag("--json", options->json, "machine-readable, schema headroom.import/1");
  auto import = declare_import_options(app);
  return [options, import] {
    const auto done = merge(*options, *import);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli
