// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>

#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "report/study.h"
#include "storage/storage.h"
#include "tune/study_facts.h"
#include "tune/what_if.h"

namespace headroom::cli {

namespace {

struct Options {
  std::string storage;
  std::optional<std::string> study;
  bool json = false;
};

Result<void> study(const Options& options) {
  HR_TRY(const StorageContent content, read_storage({.name = options.storage, .study = options.study}));
  std::vector<StudyReport> reports;
  for (const Study& one : content.studies) {
    const tune::StudyOptions told{.storage = options.storage, .now = realtime_now()};
    reports.push_back(tune::study_facts(one, told));
    tune::add_what_if(one, told, reports.back());
  }
  if (options.json) {
    put(report::to_json(reports));
    return {};
  }
  for (const StudyReport& report : reports) put_visible(report::to_text(report, text_options(STDOUT_FILENO)));
  return {};
}

}  // namespace

Action declare_study(VerbInput input) {
  auto options = std::make_shared<Options>();
  auto& app = input.app;
  app.add_option("STORAGE", options->storage, "a SQLite file or journal of Optuna, or its URL")->required();
  app.add_option("--study", options->study, "the study of this name (default: all)")->type_name("NAME");
  app.add_flag("--json", options->json, "machine-readable, schema headroom.study/1");
  return [options] {
    const auto done = study(*options);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli
