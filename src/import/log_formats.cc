// SPDX-License-Identifier: Apache-2.0
// The formats that are read, by the names that --format takes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/import.h"

namespace headroom {

namespace {

struct FormatName {
  LogFormat format;
  std::string_view name, written_by;
};
constexpr std::array kFormatNames{
    FormatName{LogFormat::kUnknown, "unknown", ""},
    FormatName{LogFormat::kRecording, "hrec", ""},
    FormatName{LogFormat::kJsonl, "jsonl", "headroom export --format jsonl"},
    FormatName{LogFormat::kNvidiaSmi, "nvidia-smi",
               "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,… --format=csv"},
    FormatName{LogFormat::kDmon, "dmon", "nvidia-smi dmon -o DT"},
    FormatName{
        LogFormat::kMonitorCsv, "monitor-csv",
        "a monitor of your own: timestamp,gpu_id,gpu_util_%,mem_used_mb,…; or of W&B: time,gpu0_util,gpu1_util,…"},
    FormatName{LogFormat::kSmiXml, "nvidia-smi-xml", "nvidia-smi -q -x, once or with -l"},
    FormatName{LogFormat::kSmiText, "smi-text",
               "nvidia-smi, nvitop -1 or GPUtil.showUtilization(), again and again into one file: -l, watch, a loop"},
    FormatName{LogFormat::kSmiQuery, "nvidia-smi-q", "nvidia-smi -q, once or with -l"},
    FormatName{LogFormat::kPmon, "pmon", "nvidia-smi pmon -o DT (the processes of a GPU together)"},
    FormatName{LogFormat::kGpustat, "gpustat", "gpustat, with --json or without, again and again into one file"},
    FormatName{
        LogFormat::kJsonRows, "json-rows",
        "a monitor of your own: {\"timestamp\":…,\"gpu_util\":…}, nvtop -s again and again, each after a date, or "
        "answers of CloudWatch, Graphite, InfluxDB and Netdata"},
    FormatName{LogFormat::kRocmText, "rocm-smi", "rocm-smi, again and again into one file, each after a date"},
    FormatName{LogFormat::kAmdText, "amd-smi", "amd-smi monitor -w 1, with --csv or without"},
    FormatName{LogFormat::kRadeontop, "radeontop", "radeontop -d gpu.log"},
    FormatName{LogFormat::kTegrastats, "tegrastats", "tegrastats, of a Jetson"},
    FormatName{LogFormat::kPowermetrics, "powermetrics", "powermetrics --samplers gpu_power, of a Mac"},
    FormatName{LogFormat::kAfterburner, "afterburner", "MSI Afterburner's hardware monitoring log (.hml)"},
    FormatName{LogFormat::kTypeperf, "typeperf",
               "typeperf \"\\GPU Engine(*)\\Utilization Percentage\" -si 1, of Windows"},
    FormatName{LogFormat::kInflux, "influx", "Telegraf's [[inputs.nvidia_smi]] in a file: InfluxDB's line protocol"},
    FormatName{LogFormat::kLines, "lines",
               "lines of a monitor of your own: 2025-06-03 14:02:11 GPU 0: util=87% power=242W"},
    FormatName{LogFormat::kDcgm, "dcgm", "dcgmi dmon -e 203,204,155,252,1002,…"},
    FormatName{LogFormat::kPrometheus, "prometheus",
               "a range query of dcgm-exporter's metrics, as JSON or as promtool prints it; VictoriaMetrics' export"},
    FormatName{LogFormat::kScrapes, "scrapes",
               "what dcgm-exporter answers, again and again into one file, each after a date"},
    FormatName{LogFormat::kLongCsv, "long-csv",
               "a row per metric: timestamp,gpu,metric,value; Grafana's CSV of several series, or Graphite's lines"},
    FormatName{LogFormat::kExportCsv, "headroom-csv", "headroom export --format csv"},
    FormatName{LogFormat::kKineto, "kineto", "PyTorch's profiler: export_chrome_trace(\"trace.json\")"},
    FormatName{LogFormat::kNsys, "nsys", "nsys export --type sqlite: Nsight Systems"},
    FormatName{LogFormat::kStepTimes, "step-times", "a table of your own: worker,step,step_time_s"},
};

}  // namespace

std::string_view log_format_name(LogFormat format) {
  return std::find_if(kFormatNames.begin(), kFormatNames.end(), [&](const auto& f) { return f.format == format; })
      ->name;
}

std::string formats_text() {
  std::string text;
  for (const FormatName& one : kFormatNames)
    if (!one.written_by.empty()) text += fmt::format("  {:15}{}\n", one.name, one.written_by);
  return text;
}

std::optional<LogFormat> log_format_of(std::string_view name) {
  const auto found =
      std::find_if(kFormatNames.begin(), kFormatNames.end(), [&](const auto& f) { return f.name == name; });
  if (found == kFormatNames.end() || found->format == LogFormat::kUnknown) return std::nullopt;
  return found->format;
}

}  // namespace headroom
