// SPDX-License-Identifier: Apache-2.0
#include "tune/pruner_text.h"

namespace headroom::tune {

Result<PrunerSettings> parse_pruner(std::string_view text) {
  return fail(Errc::kInvalidInput, "not read yet: " + std::string(text));
}
std::string pruner_text(const PrunerSettings&) { return ""; }

}  // namespace headroom::tune
