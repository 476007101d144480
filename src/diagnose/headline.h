// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "analyze/analysis.h"
#include "model/explanation.h"

namespace headroom::diagnose {

// The answer in one or two plain sentences: what the GPUs did, and the largest loss; of a job that failed that first,
// with where it was by its own last words. Sets sentence and headline.
void put_headline(const Analysis& a, Explanation& e);
void put_headline(std::string sentence, bool goes_on, Explanation& e);

}  // namespace headroom::diagnose
