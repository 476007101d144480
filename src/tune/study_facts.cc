// SPDX-License-Identifier: Apache-2.0
#include "tune/study_facts.h"

namespace headroom::tune {

StudyReport study_facts(const Study& study, const StudyOptions& options) {
  StudyReport report;
  report.name = study.name;
  report.storage = options.storage;
  return report;
}

}  // namespace headroom::tune
