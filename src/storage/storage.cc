// SPDX-License-Identifier: Apache-2.0
#include "storage/storage.h"

namespace headroom {

Result<StorageContent> read_storage(const StorageRequest& request) {
  return fail(Errc::kUnsupported, request.name + ": not read yet");
}

}  // namespace headroom
