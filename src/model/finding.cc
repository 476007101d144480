// SPDX-License-Identifier: Apache-2.0
#include "model/finding.h"

namespace headroom {

Nanos length(const Claims& claims) {
  Nanos sum = 0;
  for (const ClaimedPiece& piece : claims) sum += piece.end - piece.begin;
  return sum;
}

}  // namespace headroom
