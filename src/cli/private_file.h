// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

// Small files of the user's own in the folder of state.
namespace headroom::cli {

// The file, made where it is not there, locked until it is dropped: others hold it for milliseconds. kBusy: they do
// not.
[[nodiscard]] Result<Fd> locked_file(const std::string& path);

// Readable by the user alone, and there whole or as it was.
[[nodiscard]] Result<void> replace_private_file(const std::string& path, std::string_view text);

}  // namespace headroom::cli
