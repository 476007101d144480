// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyze/analysis.h"
#include "model/finding.h"

// Waits whose other end the recording names: a connection, a pipe, a child process, a file.
namespace headroom::diagnose {

// Where owners of a GPU were when they were looked at, most often first: "when looked at in or near this time, its main
// thread was on a connection to 10.0.0.5:9000 (82 %), over which 3.1 GiB came and 2 MiB went". Looks are readings
// apart: where the claims are short, waits for kernels between them may be among these.
[[nodiscard]] std::string looks_sentence(const Analysis& a, const Looks& looks, const Claims& claims);
// The same of others, if a place where they were often has a name; else nothing.
[[nodiscard]] std::vector<std::string> named_places(const Analysis& a, const Looks& looks, std::string_view whose);

// "process 4243 (ffmpeg -i a.mp4 -)" at the other end of the pipe or socket that was waited on most; "" where that is
// not known.
[[nodiscard]] std::string pipe_end(const Analysis& a, const Looks& looks);

// Takes out of a set about idle time of the owners what they cannot have waited for, by what they waited for by name.
void follow_the_wait(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding);

// Of time in which a process waits at its own port, and hardly reads or sends: who uses the GPU has yet to ask.
void nobody_asks(Finding& finding);

// The share of the looks in which they waited for a process on a GPU of the job, at the other end of a pipe or a
// socket.
[[nodiscard]] double share_for_owners(const Analysis& a, const Looks& looks);

// The share of the looks that found a main thread waiting for one thing of this kind.
[[nodiscard]] double share_on(const Analysis& a, const Looks& looks, WaitKind kind);

}  // namespace headroom::diagnose
