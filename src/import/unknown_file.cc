// SPDX-License-Identifier: Apache-2.0
#include "import/unknown_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/visible.h"
#include "import/blank_table.h"
#include "import/column_rows.h"
#include "import/column_words.h"
#include "import/line_prefixes.h"
#include "import/log_reader.h"
#include "import/log_records.h"
#include "import/table.h"
#include "import/unnamed_columns.h"

namespace headroom {

namespace {

constexpr std::size_t kHead = 4096;  // bytes that are looked at

constexpr std::string_view kRun = "headroom run -- CMD records the job itself, and what it prints";
constexpr std::string_view kLog =
    "beside the job: nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw --format=csv -l 1 "
    "> gpu.csv";
constexpr std::string_view kExport =
    "the report itself is read: nsys export --type sqlite -o report.sqlite REPORT.nsys-rep";
constexpr std::string_view kAccepted = "headroom import --help lists what can be read";

// A kind of file, by the bytes that it begins with or by its ending. {} of `next` is the file's name.
struct Kind {
  std::string_view begins, ends, what, next;
};
constexpr std::array kKinds{
    Kind{"", ".nsys-rep", "a report of Nsight Systems as it keeps it", "nsys export --type sqlite -o report.sqlite {}"},
    Kind{"", ".qdrep", "a report of Nsight Systems as it keeps it", "nsys export --type sqlite -o report.sqlite {}"},
    Kind{"", ".ncu-rep", "a report of Nsight Compute: kernels, and no time between them", kRun},
    Kind{"", ".xplane.pb", "a profile of TensorFlow or JAX", kRun},
    Kind{"\x7f"
         "ELF",
         "", "a program", "headroom run -- {}"},
    Kind{"#!", "", "a script", "headroom run -- {}"},
    Kind{"", ".py", "a program in Python", "headroom run -- python3 {}"},
    Kind{"", ".sh", "a script", "headroom run -- sh {}"},
    Kind{"", ".ipynb", "a notebook", "headroom record --pid PID records its kernel while it runs"},
    Kind{"PK\x03\x04", ".xlsx", "a workbook of Excel", "save its sheet as CSV, and give that to Headroom"},
    Kind{"PK\x03\x04", ".ods", "a workbook of LibreOffice", "save its sheet as CSV, and give that to Headroom"},
    Kind{"PK\x03\x04", "", "a zip archive, such as torch.save and numpy.savez write", kLog},
    Kind{"\x80\x02", "", "a pickle, such as a snapshot of PyTorch's memory", kLog},
    Kind{"\x80\x03", "", "a pickle, such as a snapshot of PyTorch's memory", kLog},
    Kind{"\x80\x04", "", "a pickle, such as a snapshot of PyTorch's memory", kLog},
    Kind{"\x80\x05", "", "a pickle, such as a snapshot of PyTorch's memory", kLog},
    Kind{"PAR1", "", "a table in Parquet", "save it as CSV: pandas.read_parquet(FILE).to_csv(\"log.csv\")"},
    Kind{"\x89HDF", "", "an HDF5 file", kLog},
    Kind{"\x93NUMPY", "", "an array of NumPy", kLog},
    Kind{"\x89PNG", "", "a picture", kLog},
    Kind{"\xff\xd8\xff", "", "a picture", kLog},
    Kind{"%PDF", "", "a PDF", kLog},
};

constexpr std::string_view kStudy =
    "headroom study reads the study itself: optuna.create_study(storage=\"sqlite:///study.db\", …)";

// A text that tells what it is by words in it.
struct Text {
  std::string_view words, what, next;
};
constexpr std::array kTexts{
    Text{"Slurm Job Statistics", "means of a whole job, as jobstats prints them: nothing of what the GPU did when",
         kLog},
    Text{"Total Time (ns)  Instances", "what nsys stats prints: sums of a report of Nsight Systems", kExport},
    Text{"Total Time (ns)  Num Calls", "what nsys stats prints: sums of a report of Nsight Systems", kExport},
    Text{" A new study created ", "what Optuna printed of a study, without a reading of a GPU", kStudy},
    Text{" finished with value: ", "what Optuna printed of a study, without a reading of a GPU", kStudy},
    Text{"\"GPU use (%)\"", "answers of rocm-smi that do not say when they were given",
         "write a date above each: while true; do date; rocm-smi --showuse --showmeminfo vram --showpower --json; "
         "sleep 1; "
         "done > gpu.log"},
    Text{"\"Start_Timestamp\",\"End_Timestamp\"", "kernels as rocprof traced them, in a form that is not read", kRun},
    Text{"Self CPU %", "the table that PyTorch's profiler prints: sums, and nothing of when they were",
         "the trace itself is read: prof.export_chrome_trace(\"trace.json\")"},
    Text{"<html", "a web page", kLog},
    Text{"CPU Efficiency:", "means of a whole job, as seff prints them: nothing of what the GPU did when", kLog},
    Text{"|TRESUsageIn", "what sacct keeps of whole jobs: nothing of what the GPU did when", kLog},
    Text{"top - ", "what top prints: processes of the machine, and nothing of a GPU", kLog},
    Text{",datetime_start,datetime_complete", "a table of a study's trials, as trials_dataframe() makes it", kStudy},
    Text{"CSV output\"\n\"Author:\"", "a table of dstat or dool, of which no column of a GPU is known", kLog},
};

constexpr std::string_view kDoctor = "headroom doctor, on that machine, says what is missing there";
constexpr std::array kFailedTools{
    FailedTool{
        "couldn't communicate with the NVIDIA driver",
        "the kernel module of the driver is not loaded, as after an update of the kernel, or there is no such GPU",
        kDoctor},
    FailedTool{"Driver/library version mismatch",
               "the driver was updated while the older one is still loaded: a restart of the machine ends that",
               kDoctor},
    FailedTool{"Failed to initialize NVML", "the driver does not answer: in a container its devices may be missing",
               kDoctor},
    FailedTool{"couldn't find libnvidia-ml.so", "the library of the driver is not there", kDoctor},
    FailedTool{"No devices were found",
               "the driver runs and has no GPU: it was not given one, or the GPU fell off the bus", kDoctor},
    FailedTool{"GPU is lost", "the driver lost the GPU: it takes a reset, or a restart of the machine",
               "dmesg | grep -i xid, on that machine, says why; headroom doctor says what is seen of it now"},
    FailedTool{"Unable to determine the device handle", "the driver lost the GPU, or cannot start it",
               "dmesg | grep -i xid, on that machine, says why; headroom doctor says what is seen of it now"},
    FailedTool{"nvidia-smi: command not found", "there is no nvidia-smi on that machine", kDoctor},
    FailedTool{"nvidia-smi: not found", "there is no nvidia-smi on that machine", kDoctor},
    FailedTool{"'nvidia-smi' is not recognized", "there is no nvidia-smi on that machine", kDoctor},
    FailedTool{"is not a valid field to query", "this nvidia-smi does not know a column that it was asked for",
               "nvidia-smi --help-query-gpu lists those that it knows"},
};

// " (with the keys period, duration, unit …)", of the first ones; "" where there is none.
std::string keys_words(std::string_view head) {
  constexpr std::size_t kShown = 6, kLongest = 40;
  std::vector<std::string> keys;
  for (std::size_t at = head.find('"'); at != std::string_view::npos && keys.size() < kShown; at = head.find('"', at)) {
    const std::size_t end = head.find('"', at + 1);
    if (end == std::string_view::npos) break;
    const std::string_view word = head.substr(at + 1, end - at - 1);
    at = end + 1;
    const bool is_key = trim(head.substr(at, 2)).starts_with(':');
    if (!is_key || word.empty() || word.size() > kLongest) continue;
    if (std::string key = visible(word); std::find(keys.begin(), keys.end(), key) == keys.end())
      keys.push_back(std::move(key));
  }
  return keys.empty() ? "" : fmt::format(" (with the keys {}{})", join(keys, ", "), keys.size() == kShown ? " …" : "");
}

// " (its elements: rocprof, kernel, …)", the first ones of an XML; "" where there is none.
std::string elements_words(std::string_view head) {
  constexpr std::size_t kShown = 6, kLongest = 40;
  std::vector<std::string> elements;
  for (std::size_t at = head.find('<'); at != std::string_view::npos && elements.size() <= kShown;
       at = head.find('<', at + 1)) {
    const std::string_view name = head.substr(at + 1, head.find_first_of(" \t\r\n/>", at + 1) - at - 1);
    if (name.empty() || name.size() > kLongest || name[0] == '?' || name[0] == '!') continue;
    if (std::string element = visible(name); std::find(elements.begin(), elements.end(), element) == elements.end())
      elements.push_back(std::move(element));
  }
  if (elements.empty()) return "";
  const bool more = elements.size() > kShown;
  elements.resize(std::min(kShown, elements.size()));
  return fmt::format(" (its elements: {}{})", join(elements, ", "), more ? " …" : "");
}

// "1741600000123 93.0 0": time, value and step of one metric, which MLflow names the file by.
bool is_metric_of_mlflow(std::string_view line) {
  const auto words = split(line, ' ');
  constexpr std::size_t kDigitsOfTime = 13;
  return words.size() == 3 && words[0].size() == kDigitsOfTime &&
         std::all_of(words.begin(), words.end(), [](auto word) { return parse_number<double>(word).has_value(); });
}

// TensorBoard's files begin with a length and its checksum.
bool is_tensorboard(std::string_view head) { return head.substr(0, 64).find("brain.Event:") != std::string_view::npos; }

// "[INFO] epoch 3/90 step 120 loss 0.37", "Epoch 1: 10%|█ …": several such lines are what a job printed.
bool is_progress(std::string_view line) {
  const std::string small = lower(line);
  const auto has = [&](std::string_view word) { return small.find(word) != std::string::npos; };
  return small.find_first_of("0123456789") != std::string::npos &&
         (has("step") || has("epoch") || has("iter") || has("loss") || has("it/s") || has("s/it"));
}

// "45, 8123, 24576" and "45 %, 8123 MiB".
bool is_row_of_readings(const std::vector<std::string_view>& cells) {
  return cells.size() > 1 && std::all_of(cells.begin(), cells.end(), [](std::string_view cell) {
           return parse_number<double>(cell.substr(0, cell.find(' '))).has_value();
         });
}

struct Seen {
  std::string_view first, second;                     // lines that are not empty
  std::size_t progress = 0, readings = 0, cells = 0;  // cells: of a row of readings
  bool table = false;                                 // the first line has several cells, and the next as many
};

// A cell of a header has no sentence in it, as lines that a program prints have between their commas.
bool has_sentences(const std::vector<std::string_view>& cells) {
  constexpr std::ptrdiff_t kMostBlanks = 6;
  return std::any_of(cells.begin(), cells.end(),
                     [](std::string_view cell) { return std::count(cell.begin(), cell.end(), ' ') > kMostBlanks; });
}

Seen look_at(std::string_view head) {
  Seen seen;
  std::size_t lines = 0, cells = 0;
  LineCursor cursor(head);
  while (cursor.next()) {
    const std::string_view line = trim(cursor.line());
    if (line.empty()) continue;
    if (lines == 0) seen.first = line, cells = has_sentences(csv_cells(line)) ? 0 : csv_cells(line).size();
    if (lines == 1) seen.second = line, seen.table = cells > 1 && csv_cells(line).size() == cells;
    if (is_progress(line)) ++seen.progress;
    if (const auto row = csv_cells(line); is_row_of_readings(row)) ++seen.readings, seen.cells = row.size();
    ++lines;
  }
  return seen;
}

// Names of columns between blanks, and below them as many cells, which may be of two words, or one more: the row's
// number.
bool is_printed_table(const Seen& seen) {
  const auto names = words_of(seen.first);
  const std::size_t below = words_of(seen.second).size();
  const bool plain = std::none_of(names.begin(), names.end(), [](auto name) { return name.ends_with(':'); });
  return plain && seen.first.find(',') == std::string_view::npos && is_csv_header(names) && below >= names.size() &&
         below <= 2 * names.size() + 1;
}

// "Start (ns),Duration (ns),CorrId,…", "Time (%),Total Time (ns),Instances,…", of older ones "Start(nsec)"; nvprof's
// "Start","Duration".
bool is_nsys_stats(const std::vector<std::string_view>& cells) {
  const auto has = [&](std::string_view word) {
    return std::any_of(cells.begin(), cells.end(), [&](std::string_view cell) {
      return cell.starts_with(word) && trim(cell.substr(word.size())).find_first_not_of("(numsec)") == cell.npos;
    });
  };
  const auto is_reading = [](std::string_view cell) {
    const auto rule = csv_column(cell);
    return rule && rule->role == ColumnRole::kMetric;
  };
  if (std::any_of(cells.begin(), cells.end(), is_reading)) return false;
  return has("Duration") ? has("Start") : has("Total Time") && (has("Instances") || has("Num Calls") || has("Calls"));
}

// A row for each process that has ended, with how long it ran and its mean use.
bool is_accounting(const std::vector<std::string_view>& cells) {
  const auto has = [&](std::string_view name, std::string_view unit) {
    return std::any_of(cells.begin(), cells.end(), [&](std::string_view cell) {
      return bare_header(cell) == name && cell.find(unit) != std::string_view::npos;
    });
  };
  return has("pid", "") && (has("max_memory_usage", "") || has("time", "[ms]"));
}

bool has_times_of_day(const std::vector<std::string_view>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](std::string_view cell) {
    const auto rule = csv_column(cell);
    return rule && rule->role == ColumnRole::kTimestamp && bare_header(cell) != "time";  // "time [ms]": how long it ran
  });
}

}  // namespace

const FailedTool* failed_tool(std::string_view line) {
  const auto* known = std::find_if(kFailedTools.begin(), kFailedTools.end(), [&](const FailedTool& tool) {
    return line.find(tool.words) != std::string_view::npos;
  });
  return known == kFailedTools.end() ? nullptr : known;
}

bool are_means_of_a_job(std::string_view head) {
  return std::any_of(kTexts.begin(), kTexts.end(), [&](const Text& text) {
    return text.what.starts_with("means of a whole job") && head.find(text.words) != std::string_view::npos;
  });
}

bool is_other_table(const std::vector<std::string_view>& cells) {
  return is_process_header(cells) || is_accounting(cells) || is_nsys_stats(cells);
}

namespace {

Error no_log(const std::string& name, std::string_view what, std::string_view next) {
  return {Errc::kInvalidInput, fmt::format("{}: {}", name, what), std::string(next)};
}

// "[GPU 0] util: 87%" is a line that somebody printed.
bool begins_json(std::string_view text) {
  if (!text.starts_with('[')) return text.starts_with('{');
  const std::string_view inside = trim(text.substr(1));
  const auto behind = inside.find_first_not_of("0123456789");  // "[2025-11-05 10:00:00] iteration 100"
  if (behind > 0 && behind < inside.size() && std::string_view("-:/").find(inside[behind]) != std::string_view::npos)
    return false;
  return inside.empty() || std::string_view("[{\"]-0123456789").find(inside[0]) != std::string_view::npos;
}

// Of XML and JSON of a tool that is not known, what is in it; nothing of other texts.
std::optional<Error> unknown_structure(const std::string& name, std::string_view head) {
  if (trim(head).starts_with("<?xml"))
    return no_log(
        name, fmt::format("XML of a tool that is not known, not a log{}", elements_words(head)),
        fmt::format("{}, such as a table with a time, utilization.gpu in percent and memory.used in MiB", kAccepted));
  if (begins_json(trim(head))) {
    if (const auto lines = lines_of_records(head.substr(0, std::min(head.size(), head.rfind('\n')))))
      return no_log(
          name,
          fmt::format("records of a collector of logs, whose lines are no log that is known; the first is '{}'",
                      visible(std::string_view(*lines).substr(0, std::min<std::size_t>(120, lines->find('\n'))))),
          fmt::format("rows without a header: --columns utilization.gpu,memory.used,… names their cells; or {}", kLog));
    if (head.find("\"op_code\"") != std::string_view::npos)
      return no_log(name, "this is a journal of Optuna", fmt::format("headroom study {}", typed_word(name)));
    return no_log(
        name, fmt::format("JSON of a tool that is not known, not a log{}", keys_words(head)),
        fmt::format("{}, such as a table of it with a time, utilization.gpu in percent and memory.used in MiB; or "
                    "{}",
                    kAccepted, kLog));
  }
  return std::nullopt;
}

}  // namespace

Error unknown_table(const std::string& name, const std::vector<std::string_view>& names) {
  constexpr std::size_t kShown = 12;
  const std::size_t shown = names.size() > kShown + 1 ? kShown : names.size();
  std::vector<std::string> called;
  for (std::size_t i = 0; i < shown; ++i) called.push_back(visible(header_as_utf8(names[i].substr(0, kLongestHeader))));
  std::string list = join(called, ", ");
  if (shown < names.size()) list += fmt::format(" and {} others", names.size() - shown);
  if (const std::string told = numbered_columns_hint(names); !told.empty())
    return {
        Errc::kInvalidInput,
        fmt::format("{}: a table with a column of each GPU, and whether that is its use, its power or its memory no "
                    "cell says: {}",
                    name, list),
        fmt::format("of their use: --columns {}; gpu0_power_w is its power, gpu0_memory_used_mib its memory",
                    typed_word(told))};
  return {Errc::kInvalidInput,
          fmt::format("{}: a table of which no column is a reading of a GPU that is known: {}", name, list),
          fmt::format("if one is: --columns NAME=utilization.gpu,NAME=timestamp,…, of several GPUs NAME=gpu0_util,"
                      "NAME=gpu1_util,…; else {}",
                      kLog)};
}

namespace {

// What a file is by its first bytes, its name, or words that stand in it.
std::optional<Error> known_content(const std::string& name, std::string_view head) {
  if (trim(head).empty()) return no_log(name, "the file is empty", kAccepted);
  for (const Kind& kind : kKinds) {
    if (!head.starts_with(kind.begins) || !name.ends_with(kind.ends)) continue;
    std::string next(kind.next);
    if (const auto place = next.find("{}"); place != std::string::npos) next.replace(place, 2, typed_word(name));
    return no_log(name, fmt::format("{}, and no log of GPUs", kind.what), next);
  }
  if (is_tensorboard(head))
    return no_log(name, "what a job wrote for TensorBoard, which has no readings of GPUs", kRun);
  if (head.find('\0') != std::string_view::npos) return no_log(name, "a binary file, not a log", kAccepted);
  if (head.find("NVSMI LOG") != std::string_view::npos)
    return no_log(name, "this is nvidia-smi's text for people", kLog);
  if (const FailedTool* failed = failed_tool(head))
    return no_log(name, fmt::format("no reading of a GPU; it says '…{}…': {}", failed->words, failed->means),
                  failed->next);
  for (const Text& known : kTexts)
    if (head.find(known.words) != std::string_view::npos) return no_log(name, known.what, known.next);
  return std::nullopt;
}

// A table that is known, by the names of its columns, and has no readings over time.
std::optional<Error> known_table(const std::string& name, std::string_view head,
                                 const std::vector<std::string_view>& cells) {
  if (is_accounting(cells))
    return no_log(name,
                  fmt::format("a list of processes that have ended, as of --query-accounted-apps: {}nothing of what "
                              "the GPU did when",
                              has_times_of_day(cells) ? "" : "it has no times of day, and "),
                  kLog);
  if (is_process_header(cells) || head.find("process_name") != std::string_view::npos)
    return no_log(name,
                  "this is a log of processes, as of --query-compute-apps: their memory, and nothing that the GPU did",
                  kLog);
  if (is_nsys_stats(cells))
    return no_log(name, "a table of nsys stats, which are rows of a report of Nsight Systems", kExport);
  return std::nullopt;
}

// Rows of readings with a time in front, and no header: what --columns has to say is what stands behind the time.
std::optional<Error> rows_behind_times(const std::string& name, std::string_view head) {
  const auto plain = stamps_as_lines(head.substr(0, head.rfind('\n')));
  if (!plain) return std::nullopt;
  LineCursor lines(*plain);
  while (lines.next())
    if (const auto cells = csv_cells(lines.line()); is_row_of_readings(cells))
      return no_log(
          name,
          fmt::format("rows of {} cells behind a time, and no header, so what they mean is not known", cells.size()),
          columns_hint(cells));
  return std::nullopt;
}

}  // namespace

Error unknown_file(const std::string& name, std::string_view text) {
  const std::string_view head = text.substr(0, kHead);
  if (auto known = known_content(name, head)) return std::move(*known);
  const Seen seen = look_at(head);
  const auto cells = csv_cells(seen.first);
  if (auto known = known_table(name, head, cells)) return std::move(*known);
  if (name.ends_with(".toml"))
    return no_log(name, "tasks of a batch, not a log", fmt::format("headroom batch {} runs them", typed_word(name)));
  if (auto known = unknown_structure(name, head)) return std::move(*known);
  constexpr std::size_t kEnough = 3, kShown = 120;
  if (auto behind = rows_behind_times(name, head)) return std::move(*behind);
  if (seen.table) return unknown_table(name, cells);
  if (const auto row = row_of_blanks(seen.first); !row.empty())
    return no_log(
        name, fmt::format("rows of {} cells between blanks and no header, so what they mean is not known", row.size()),
        columns_hint({row.begin(), row.end()}));
  if (seen.readings >= kEnough)
    return no_log(name, fmt::format("rows of {} numbers and no header, so what they mean is not known", seen.cells),
                  "say it with --columns utilization.gpu,memory.used,… in the order given to --query-gpu");
  if (is_metric_of_mlflow(seen.first))
    return no_log(name, "times and values of one metric, and no name of it, as MLflow keeps them",
                  fmt::format("if it is the utilisation: tr ' ' , < {} | headroom why - --columns "
                              "timestamp,utilization.gpu,-",
                              typed_word(name)));
  if (is_printed_table(seen))
    return no_log(name, "a table between blanks, as pandas prints it", "save it: df.to_csv(\"gpu.csv\")");
  if (seen.progress >= kEnough) return no_log(name, "what a program printed, without a reading of a GPU", kRun);
  return no_log(
      name,
      fmt::format("a text in which no reading of a GPU is known; it begins with '{}'", seen.first.substr(0, kShown)),
      kLog);
}

}  // namespace headroom
