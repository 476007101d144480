// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "model/explanation.h"

// Evidence lines that several rules share.
namespace headroom::diagnose {

// "over whole readings, ", before what a summary of a time says that is less than nearly all of these; else
// "".
[[nodiscard]] std::string average_words(const HostSummary& s);
[[nodiscard]] std::string owner_sentence(const HostSummary& s);
// "a larger batch fits (3.5 times, if all of it grows with it; 10 % kept for fragments)", of bytes in use.
[[nodiscard]] std::string larger_batch_words(double used, double total);
// That the main threads wanted to run and had no core for a good part of the time; nothing where they hardly did.
[[nodiscard]] std::vector<std::string> starved_sentence(const Analysis& a, const HostSummary& s);
[[nodiscard]] std::string helper_sentence(const HostSummary& s);
// Rates to and from storage, which are averages of whole readings: what was written in a part of one counts in all of
// it. Nothing where they were not read.
[[nodiscard]] std::vector<std::string> storage_sentences(const HostSummary& s);
// What the whole machine used beside the job: whether cores were short because of others; nothing where unknown.
[[nodiscard]] std::vector<std::string> cores_sentence(const HostSummary& s);
// The same as plain figures, for who asks what helpers could have; nothing where cores or processes were not recorded.
[[nodiscard]] std::optional<HostTime> host_time(const HostSummary& s);
// Whether a slice or an entry of this phase lies where its device's work pauses again and again: a phase that came once
// is none that recurs, and weaker ones that differ by little are noise in one level of work.
[[nodiscard]] bool recurs(const Analysis& a, std::int32_t phase);
// The times of a phase that are idle for what is claimed: the start of a job is a time of the idle phase, too, and a
// finding about its pauses claims nothing of it. Empty where the phase as a whole is idle for something else.
[[nodiscard]] std::vector<Window> claimed_times(const Claims& claims, const Analysis& a, std::size_t phase);
// From the begin of one of these times to that of the next, where several come at a steady pace.
[[nodiscard]] std::optional<Nanos> pace_of(const Analysis& a, const std::vector<Window>& times);
// "GPU 0 is idle for 1:00 at a time, 3 times, every 7:00" for every device with an idle phase that recurs and whose
// idle time is claimed, but for little, unless the job names its phases itself: it knows how many there were. Times of
// it that are claimed less, such as the start of the job, are not counted; one alone recurs not.
[[nodiscard]] std::vector<std::string> recurrences(const Analysis& a, const Claims& claims);
// The idle time that these sentences are of.
[[nodiscard]] Nanos time_in_recurrences(const Analysis& a, const Claims& claims);
// That it takes more and more of the time from the first kernel to the last, of the device that has most of it, where
// it does so from each third of that to the next.
[[nodiscard]] std::vector<std::string> growth(const Analysis& a, const Claims& claims);

[[nodiscard]] std::string gpu_names(const Analysis& a, const std::vector<std::size_t>& devices);  // "GPUs 0 and 2"

// So short a recording that the driver may not have listed a process of it that was there.
[[nodiscard]] bool too_short_to_list(const Analysis& a);
// Whether it looked as often as is advised for short runs: to advise that again is no help.
[[nodiscard]] bool looks_often(const Analysis& a);

// Whether Python stacks were read: then nobody is sent to read them once more.
[[nodiscard]] bool has_stacks(const Analysis& a);
// What shows the stacks of a process of the job: gdb where it is no Python program.
[[nodiscard]] std::string stack_dump(const Analysis& a, std::string_view pid = "PID");
[[nodiscard]] std::string_view stack_tool(const Analysis& a);

// "at 78 W", "with SMs active 12 % of the time": of a metric that tells how much a busy device does.
[[nodiscard]] std::string level_words(Metric metric, double level);

void append(std::vector<std::string>& list, std::vector<std::string> more);

// ", and 1.3 GiB more each second: full in 9 s at this pace" where its memory would be full before a job has run for as
// long again; else "". Tasks of a batch come and go.
[[nodiscard]] std::string memory_grows(const Analysis& a, std::size_t device);

}  // namespace headroom::diagnose
