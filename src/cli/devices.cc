// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <ctime>
#include <memory>

#include "cli/environment.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "device/nvml_reader.h"
#include "host/tree_reader.h"
#include "model/device_list.h"
#include "report/devices.h"

namespace headroom::cli {

namespace {

// GPM compares two samples, which must not be closer than this.
constexpr Nanos kBetweenLooks = 150 * kMillisecond;

struct DevicesOptions {
  bool json = false;
};

void pause_for(Nanos duration) {
  const timespec time{static_cast<time_t>(duration / kSecond), static_cast<long>(duration % kSecond)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

int devices(const DevicesOptions& options) {
  host::TreeOptions tree_options;
  tree_options.driver_names_host_pids = foreign_pids();
  host::TreeReader tree(std::move(tree_options));
  NvmlReaderOptions reader_options;
  reader_options.path = nvml_library();
  reader_options.describe = [&tree](std::int64_t pid) { return tree.describe(pid); };
  auto reader = NvmlReader::open(std::move(reader_options));
  if (!reader) return report_error(reader.error());
  MemorySink sink;
  (*reader)->read(boottime_now(), sink);
  pause_for(kBetweenLooks);
  (*reader)->ask_all();
  (*reader)->read(boottime_now(), sink);
  DeviceList list = device_list_of(sink.take());
  if (list.driver_version.empty()) list.driver_version = (*reader)->driver_version();
  const std::string text = options.json ? report::to_json(list) : report::to_text(list, text_options(STDOUT_FILENO));
  put(text);
  return (*reader)->unusable().empty() ? kExitOk : kExitFailed;
}

}  // namespace

Action declare_devices(VerbInput input) {
  auto options = std::make_shared<DevicesOptions>();
  input.app.add_flag("--json", options->json, "print headroom.devices/1");
  return [options] { return devices(*options); };
}

}  // namespace headroom::cli
