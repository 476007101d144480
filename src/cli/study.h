// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/open_recording.h"
#include "report/layout.h"
#include "storage/storage.h"
#include "tune/study_options.h"

// The parts of `headroom study`.
namespace headroom::cli {

struct StudyVerb {
  std::string storage, recording;
  std::optional<std::string> study;
  bool json = false, full = false, no_what_if = false, watch = false;
  Nanos watch_every = 10 * kSecond;
  std::optional<std::size_t> width;
  std::string tz;
  tune::StudyOptions told;  // what the command line says of it
};

// What is told about one study, with what depends on its own time.
[[nodiscard]] Result<tune::StudyOptions> told_about(const StudyVerb& verb, const Study& study);
// A study's name as bash takes it, with whatever is in it.
[[nodiscard]] std::string typed_name(const std::string& name);
// How commands name it: "optuna.db --study sweep".
[[nodiscard]] std::string study_argument(const StudyVerb& verb, const std::string& name, bool only);
[[nodiscard]] report::TextOptions study_layout(const StudyVerb& verb);

// The facts of a study, with what the recording measured of its trials where there is one. `told` gets that, too.
[[nodiscard]] StudyReport facts_with(const OpenedRecording* recording, const Study& study, tune::StudyOptions& told);

// --watch: looks every few seconds until Ctrl-C, or until no trial of the study has been alive for long. Exit code.
[[nodiscard]] int watch_study(const StudyVerb& verb);

}  // namespace headroom::cli
