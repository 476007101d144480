// SPDX-License-Identifier: Apache-2.0
#include "tune/what_if.h"

namespace headroom::tune {

void add_what_if(const Study&, const StudyOptions&, StudyReport&) {}

}  // namespace headroom::tune
