// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "report/layout.h"
#include "storage/storage.h"
#include "tune/study_options.h"

// The parts of `headroom study`.
namespace headroom::cli {

struct StudyVerb {
  std::string storage, recording;
  std::optional<std::string> study;
  DocumentOptions document;
  bool json = false, full = false, no_what_if = false, watch = false;
  Nanos watch_every = 10 * kSecond;
  std::optional<std::size_t> width;
  std::string tz;
  tune::StudyOptions told;  // what the command line says of it
};

// One study of a storage: that of the name; where none is asked for, the only one, or that which is called `likely`.
[[nodiscard]] Result<Study> study_in(const std::string& storage, const std::optional<std::string>& name,
                                     const std::string& likely, const char* option = "--study");

// Nothing is told of it.
[[nodiscard]] StudyVerb about(const std::string& storage);
// Fills in everything that follows from the storage's name.
void settle(StudyVerb& verb);
// The options for one study, with those that depend on its own time.
[[nodiscard]] Result<tune::StudyOptions> told_about(const StudyVerb& verb, const Study& study);
// How commands name it: "optuna.db --study sweep".
[[nodiscard]] std::string study_argument(const StudyVerb& verb, const std::string& name, bool only);
[[nodiscard]] report::TextOptions study_layout(const StudyVerb& verb);

// The facts of a study, with what the recording measured of its trials where there is one. `told` gets that, too.
[[nodiscard]] StudyReport facts_with(const OpenedRecording* recording, const Study& study, tune::StudyOptions& told);

// The facts and, unless they are not wanted, the what-if of one study.
[[nodiscard]] Result<StudyReport> explained(const StudyVerb& verb, const OpenedRecording* recording,
                                            const Study& study);
// The document of the only study of a storage, or of the one that is named.
[[nodiscard]] Result<void> write_study(const StudyVerb& verb, const std::vector<Study>& studies,
                                       const std::vector<StudyReport>& reports, const DocumentFile& file);

// The output of `headroom study STORAGE --json` without further options.
[[nodiscard]] Result<std::string> studies_json(const std::string& storage);

// The page that `headroom study STORAGE -o x.html` writes: of the study of that name, or of the only one.
[[nodiscard]] Result<std::string> study_page(const std::string& storage, const std::optional<std::string>& name);

// --watch: looks every few seconds until Ctrl-C, or until no trial of the study has been alive for long. Exit code.
[[nodiscard]] int watch_study(const StudyVerb& verb);

}  // namespace headroom::cli
