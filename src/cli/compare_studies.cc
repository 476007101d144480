// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_studies.h"

#include <unistd.h>

#include "base/database_copy.h"
#include "cli/output.h"
#include "cli/require.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "compare/requirements.h"
#include "compare/studies.h"
#include "report/study_verify.h"
#include "storage/find_storage.h"
#include "tune/first_trials.h"

namespace headroom::cli {

namespace {

struct Side {
  StudyReport report;
  std::optional<FirstTrials> ended;  // all that did
  std::vector<Figure> figures;
};

Result<Side> side_of_study(const std::string& storage, const std::optional<std::string>& name, const char* option) {
  HR_TRY(const Study study, study_in(storage, name, "", option));
  HR_TRY(tune::StudyOptions told, told_about(about(storage), study));
  Side side{.report = facts_with(nullptr, study, told), .ended = {}, .figures = {}};
  side.figures = compare::figures_of_study(side.report, study.metric_names);
  side.ended = tune::measured_first(study, side.report, 0, tune::ended_since(side.report, 0));
  return side;
}

}  // namespace

bool names_storage(const std::string& word) {
  return word.find("://") != std::string::npos || find_storage({word}).has_value();
}

Result<int> compare_studies(const StudyPair& pair) {
  DatabaseCopy::remove_stale();
  DocumentFile file;
  if (!pair.document.path.empty()) {
    HR_TRY(file, document_file("compare", pair.document));
  }
  HR_TRY(const Side a, side_of_study(pair.a, pair.study_a, "--study-a"));
  HR_TRY(const Side b, side_of_study(pair.b, pair.study_b, "--study-b"));
  StudyComparison comparison = compare::compare_studies(a.report, a.ended, b.report, b.ended);
  HR_TRY(comparison.requirements, judged_of(pair.requirements, b.figures));
  if (!file.path.empty()) HR_TRYV(write_document(file, report::StudyComparisonDocument{comparison}));
  if (pair.prints)
    put(pair.json ? report::to_json(comparison) : report::to_text(comparison, text_options(STDOUT_FILENO)));
  return comparison.differences.empty() && compare::all_kept(comparison.requirements) ? kExitOk : kExitFailed;
}

}  // namespace headroom::cli
