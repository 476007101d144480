// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recording.h"

namespace headroom {

// Every way in which this program loses or mends data, in one table. docs/losses.md is made from it by
// tools/losses_doc.py.
enum class LossKind : std::uint8_t {
  // while sampling
  kMissedTick,
  kLateTick,
  kReaderHung,
  kRowNotRecorded,
  kRowOutOfOrder,
  kGpuUtilRingOverrun,
  kGpuUtilRingTimeStamp,
  kGpuPowerRingOverrun,
  kGpuPowerRingTimeStamp,
  kProcIoNoPermission,
  kProcEnvironNoPermission,
  kStackRejected,
  kStackCut,
  kStackLeftOut,
  kCodeLeftOut,
  kMarkLost,
  kMarkShort,
  kMarkCut,
  kOutputLost,
  // reading a recording
  kMissingRows,
  kDamagedChunk,
  kDamagedTail,
  kDamagedFile,
  kRepeatedChunk,
  kUnknownChunkFormat,
  kUnknownCodec,
  kUnknownMetric,
  kUnknownSource,
  kUnknownTable,
  kUnknownLine,
  kUnknownValue,
  kUnknownTime,
  // importing a log
  kGap,
  kMissingRow,
  kUnreadableRow,
  kShortRow,
  kLongRow,
  kTruncatedLastLine,
  kNoFinalNewline,
  kUnreadableValue,
  kValueOutOfRange,
  kDuplicateTimestamp,
  kDuplicateRow,
  kSharedSecond,
  kSharedMinute,
  kOutOfOrderRow,
  kBackwardTimestamp,
  kClockStepBack,
  kClockStepAhead,
  kNoTimestamps,
  kNoDate,
  kNamedZone,
  kAssumedTimeZone,
  kAssumedInterval,
  kInterleavedMessage,
  kRepeatedHeader,
  kChangedFact,
  kColumnNotKept,
  kMemoryUtilIsOccupancy,
  kFractionOfOne,
  kEngineActivity,
  kNoGpuColumn,
  kTruncatedTrace,
  kUnreadableEvent,
  kOpenRange,
  kGraphsAsKernels,
  kAssumedUnit,
  kAssumedDateOrder,
};

struct LossInfo {
  LossKind id;
  std::string_view name;  // stored in recordings
  Severity severity;      // the usual one; a single loss may be worse
  bool touches_slices;    // what the ledger says of the time and source concerned may be untrue for it
  std::string_view help;  // for people
  bool in_short = false;  // its detail is a clause that a short report says of the log, too
};

// clang-format off
inline constexpr std::array kLosses{
    /* while sampling */
    LossInfo{LossKind::kMissedTick, "missed_tick", Severity::kDataLoss, true, "nobody looked when it was time to: the machine slept, or a reader or the scheduler held the sampling for an interval or more"},
    LossInfo{LossKind::kLateTick, "late_tick", Severity::kNotice, true, "a look began more than half an interval late; what was read is true, and speaks about a longer time"},
    LossInfo{LossKind::kReaderHung, "reader_hung", Severity::kDataLoss, true, "a reader (most likely the GPU driver) did not come back before the end; its last look is missing"},
    LossInfo{LossKind::kRowNotRecorded, "row_not_recorded", Severity::kDataLoss, true, "rows were read and not written: the disk was full or too slow"},
    LossInfo{LossKind::kRowOutOfOrder, "row_out_of_order", Severity::kDataLoss, true, "a row was older than the one before it, and was left out"},
    LossInfo{LossKind::kGpuUtilRingOverrun, "gpu_util_ring_overrun", Severity::kNotice, true, "the driver's buffer of fine utilisation samples was full when drained; older ones are gone"},
    LossInfo{LossKind::kGpuUtilRingTimeStamp, "gpu_util_ring_time_stamp", Severity::kNotice, true, "fine utilisation samples of the driver were out of order or in the future, and were left out"},
    LossInfo{LossKind::kGpuPowerRingOverrun, "gpu_power_ring_overrun", Severity::kInfo, false, "the driver's buffer of fine power samples was full when drained; no account of time rests on them"},
    LossInfo{LossKind::kGpuPowerRingTimeStamp, "gpu_power_ring_time_stamp", Severity::kNotice, false, "fine power samples of the driver were out of order or in the future, and were left out"},
    LossInfo{LossKind::kProcIoNoPermission, "proc_io_no_permission", Severity::kNotice, false, "the I/O counters of another user's process may not be read; its rows say so"},
    LossInfo{LossKind::kProcEnvironNoPermission, "proc_environ_no_permission", Severity::kNotice, false, "the environment of another user's process may not be read; its facts are fewer"},
    LossInfo{LossKind::kStackRejected, "stack_rejected", Severity::kInfo, false, "a Python stack changed while it was read, and was left out"},
    LossInfo{LossKind::kStackCut, "stack_cut", Severity::kInfo, false, "a Python stack was deeper than is read: its outermost frames are missing, and three dots stand for them"},
    LossInfo{LossKind::kStackLeftOut, "stack_left_out", Severity::kNotice, false, "Python processes, threads or interpreters of which no stack is read: there are more than are looked at, or what they are could not be told"},
    LossInfo{LossKind::kCodeLeftOut, "code_left_out", Severity::kNotice, false, "processes that make code without end: more functions than are named (65,536, or 16 MiB, of a process); those that came later are (other code) on stacks, and no place of a finding"},
    LossInfo{LossKind::kMarkLost, "mark_lost", Severity::kNotice, false, "the job made marks faster than they were read, and the oldest were written over: phases and steps are incomplete there"},
    LossInfo{LossKind::kMarkShort, "mark_short", Severity::kInfo, false, "phases too short to be told apart: their time belongs to the phase around them"},
    LossInfo{LossKind::kMarkCut, "mark_cut", Severity::kNotice, false, "marks that were left out: there are too many names, or what the job wrote is no mark"},
    LossInfo{LossKind::kOutputLost, "output_lost", Severity::kInfo, false, "lines of the job's output that were passed on and not looked at: they came faster than they are read"},
    /* reading a recording */
    LossInfo{LossKind::kMissingRows, "missing_rows", Severity::kDataLoss, true, "rows that were written are missing between those that could be read"},
    LossInfo{LossKind::kDamagedChunk, "damaged_chunk", Severity::kDataLoss, true, "a block of rows is damaged and was left out"},
    LossInfo{LossKind::kDamagedTail, "damaged_tail", Severity::kDataLoss, true, "rows of the last minutes are damaged and were left out"},
    LossInfo{LossKind::kDamagedFile, "damaged_file", Severity::kError, true, "a part of the file cannot be read"},
    LossInfo{LossKind::kRepeatedChunk, "repeated_chunk", Severity::kNotice, false, "a block holds rows that were read already; used once"},
    LossInfo{LossKind::kUnknownChunkFormat, "unknown_chunk_format", Severity::kDataLoss, true, "a block of rows in a form that a newer program wrote; left out"},
    LossInfo{LossKind::kUnknownCodec, "unknown_codec", Severity::kDataLoss, true, "a column in a codec that a newer program wrote; left out"},
    LossInfo{LossKind::kUnknownMetric, "unknown_metric", Severity::kNotice, false, "a metric that a newer program wrote; left out"},
    LossInfo{LossKind::kUnknownSource, "unknown_source", Severity::kNotice, false, "a kind of source that a newer program wrote, left out; or rows of a source that the file does not name"},
    LossInfo{LossKind::kUnknownTable, "unknown_table", Severity::kInfo, false, "a table that a newer program wrote; left out"},
    LossInfo{LossKind::kUnknownLine, "unknown_line", Severity::kNotice, false, "a kind of line of the text form that a newer program wrote; left out"},
    LossInfo{LossKind::kUnknownValue, "unknown_value", Severity::kNotice, false, "a state that a newer program wrote; taken as unknown"},
    LossInfo{LossKind::kUnknownTime, "unknown_time", Severity::kError, true, "times that cannot be true; what they stand by was left out"},
    /* importing a log */
    LossInfo{LossKind::kGap, "gap", Severity::kDataLoss, true, "more than three intervals without a row of a GPU"},
    LossInfo{LossKind::kMissingRow, "missing_row", Severity::kDataLoss, true, "rows that the interval leads to expect are not there"},
    LossInfo{LossKind::kUnreadableRow, "unreadable_row", Severity::kDataLoss, true, "a row whose time or GPU cannot be read; left out"},
    LossInfo{LossKind::kShortRow, "short_row", Severity::kDataLoss, true, "a row with fewer cells than the header; left out"},
    LossInfo{LossKind::kLongRow, "long_row", Severity::kDataLoss, true, "a row with more cells than the header; left out"},
    LossInfo{LossKind::kTruncatedLastLine, "truncated_last_line", Severity::kNotice, false, "the last line is cut, as where the log was stopped or is still written; left out"},
    LossInfo{LossKind::kNoFinalNewline, "no_final_newline", Severity::kInfo, false, "the last line has no end; its last value may have lost digits"},
    LossInfo{LossKind::kUnreadableValue, "unreadable_value", Severity::kDataLoss, true, "a cell that is no value; absent"},
    LossInfo{LossKind::kValueOutOfRange, "value_out_of_range", Severity::kDataLoss, true, "a value that cannot be true; absent"},
    LossInfo{LossKind::kDuplicateTimestamp, "duplicate_timestamp", Severity::kDataLoss, true, "rows of a GPU with the time of the row before; the last one is kept"},
    LossInfo{LossKind::kDuplicateRow, "duplicate_row", Severity::kNotice, false, "a row that is equal to an earlier one of the same time; kept once"},
    LossInfo{LossKind::kSharedSecond, "shared_second", Severity::kInfo, false, "the log tells whole seconds; rows of one second are spread over it"},
    LossInfo{LossKind::kSharedMinute, "shared_minute", Severity::kInfo, false, "the log tells whole minutes; rows of one minute are spread over it", true},
    LossInfo{LossKind::kOutOfOrderRow, "out_of_order_row", Severity::kNotice, false, "rows were not in order of time; sorted"},
    LossInfo{LossKind::kBackwardTimestamp, "backward_timestamp", Severity::kNotice, false, "an earlier run follows a later one; sorted by time"},
    LossInfo{LossKind::kClockStepBack, "clock_step_back", Severity::kNotice, false, "the clock was set back while the log was written; later rows are moved, so that durations hold"},
    LossInfo{LossKind::kClockStepAhead, "clock_step_ahead", Severity::kNotice, false, "more than a year without a row: a clock that was set; earlier rows are moved up, so that durations hold"},
    LossInfo{LossKind::kNoTimestamps, "no_timestamps", Severity::kNotice, true, "rows carry no time: their spacing is assumed", true},
    LossInfo{LossKind::kNoDate, "no_date", Severity::kNotice, false, "times carry no date: the first is taken as 1970-01-01", true},
    LossInfo{LossKind::kNamedZone, "named_zone", Severity::kNotice, false, "a zone given by letters is ambiguous and was not used"},
    LossInfo{LossKind::kAssumedTimeZone, "assumed_time_zone", Severity::kInfo, false, "times carry no zone: read as UTC"},
    LossInfo{LossKind::kAssumedInterval, "assumed_interval", Severity::kNotice, true, "one row per GPU: the time that it speaks about is assumed"},
    LossInfo{LossKind::kInterleavedMessage, "interleaved_message", Severity::kNotice, false, "a message stands between the rows; kept as an event"},
    LossInfo{LossKind::kRepeatedHeader, "repeated_header", Severity::kInfo, false, "the header stands there again: runs were appended to one file"},
    LossInfo{LossKind::kChangedFact, "changed_fact", Severity::kNotice, false, "a fact of a GPU changed on the way; the later one is kept"},
    LossInfo{LossKind::kColumnNotKept, "column_not_kept", Severity::kInfo, false, "a column that is no metric of ours"},
    LossInfo{LossKind::kMemoryUtilIsOccupancy, "memory_util_is_occupancy", Severity::kNotice, false, "a column said how full the memory is, and not how busy; left out"},
    LossInfo{LossKind::kFractionOfOne, "fraction_of_one", Severity::kNotice, false, "utilisation without a unit, never above 1: read as a fraction of one"},
    LossInfo{LossKind::kEngineActivity, "engine_activity", Severity::kNotice, false, "no column of utilisation: the share of time in which an engine was active is taken for it"},
    LossInfo{LossKind::kNoGpuColumn, "no_gpu_column", Severity::kInfo, false, "no column says which GPU a row is about: taken as one GPU, or told apart by their order below each time", true},
    LossInfo{LossKind::kTruncatedTrace, "truncated_trace", Severity::kDataLoss, true, "the end of a trace is missing: its writer was stopped; what stands whole before is used"},
    LossInfo{LossKind::kUnreadableEvent, "unreadable_event", Severity::kDataLoss, true, "an event of a trace without a time or a length that can be read, or without the GPU that it is about; left out"},
    LossInfo{LossKind::kOpenRange, "open_range", Severity::kNotice, false, "a range of a trace that was never closed, as one is in which the profiler stopped: how far it went is not known; left out"},
    LossInfo{LossKind::kGraphsAsKernels, "graphs_as_kernels", Severity::kNotice, true, "CUDA graphs that a trace holds as wholes: gaps between their kernels count as busy"},
    LossInfo{LossKind::kAssumedUnit, "assumed_unit", Severity::kNotice, false, "times carry no unit: taken as milliseconds; ratios are true, lengths need not be"},
    LossInfo{LossKind::kAssumedDateOrder, "assumed_date_order", Severity::kInfo, false, "all times are of one date, and which of its numbers is the day no row tells: read with the month first", true},
};
// clang-format on

[[nodiscard]] constexpr const LossInfo& info(LossKind kind) { return kLosses[static_cast<std::size_t>(kind)]; }
// Nothing for a kind of a newer program.
[[nodiscard]] std::optional<LossKind> loss_kind_of(std::string_view name);

// A loss of the usual severity, or of one that is worse.
[[nodiscard]] Loss make_loss(LossKind kind, std::int64_t count, std::string detail,
                             std::optional<LossPlace> place = std::nullopt, Severity at_least = Severity::kInfo);

// Whether slices may be untrue for it: by the table, and whatever its kind for losses of data that are no usual part
// of it (worse than the table says, or of a kind of a newer program).
[[nodiscard]] bool touches_slices(const Loss& loss);
// Whether one of its places reaches into [begin, end) of the source, or of all; true if places are not known.
[[nodiscard]] bool reaches(const Loss& loss, SourceId source, Nanos begin, Nanos end);

// Adds to the counter of the same name; detail is that of the first, severity the worse of the two. Places of one
// source that meet become one; beyond kMostLossPlaces the last one grows, so that nothing is left out.
inline constexpr std::size_t kMostLossPlaces = 256;
void count_loss(std::vector<Loss>& losses, const Loss& loss);

// It is known where, and all of that is less than a percent of `span`.
[[nodiscard]] bool is_little(const Loss& loss, Nanos span);

}  // namespace headroom
