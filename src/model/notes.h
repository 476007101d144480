// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

// Begins of notes (events::Note) that are more than words: who writes them and who reads them agree here.
namespace headroom {

inline constexpr std::string_view kNoteOutOfMemory = "GPU memory, by its output: ";        // then the line
inline constexpr std::string_view kNoteException = "the last exception, by its output: ";  // then its line
inline constexpr std::string_view kNoteNvtx = "NVTX ranges are not recorded: ";            // then why
inline constexpr std::string_view kNoteNvtxNotWanted = "not wanted";                       // begins such a reason
inline constexpr std::string_view kNoteNvtxTaken = "names another library";  // is in one: somebody wants NVTX

// Why a recording has no evidence from output that was read.
inline constexpr std::string_view kOutputToldNothing = "what was read of it told no phase, step or metric";

}  // namespace headroom
