// SPDX-License-Identifier: Apache-2.0
// The one file of the tests that is compiled with the paths of the checkout and the build: with them in their command
// lines, compiler caches could not share the others between checkouts.
#include "base/testing.h"

namespace headroom {

std::string in_checkout(std::string_view below) { return HEADROOM_SOURCE_DIR "/" + std::string(below); }

std::string in_build(std::string_view below) { return HEADROOM_BUILD_DIR "/" + std::string(below); }

}  // namespace headroom
