// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "device/nvml_api.h"

// For tests: an NVML made of C++ functions over plain state, with a count per call and errors on demand. No clock of
// its own: the test moves `wall_us`. The functions of the table take no context, so one fake lives at a time.
namespace headroom {

struct FakeGpu {
  std::string uuid = "GPU-11111111-0000-0000-0000-000000000001";
  std::string name = "Fake A100";
  unsigned util = 40, memory_util = 20;
  unsigned long long total = 80ULL << 30U, used = 3ULL << 30U, reserved = 512ULL << 20U;
  unsigned power_mw = 123'456, limit_mw = 300'000, temperature = 55, mig = 0, cores = 6912;
  unsigned long long reasons = 0;
  std::map<unsigned, nvml::FieldValue> fields;  // by id; others are not supported
  std::vector<nvml::ProcessInfo> compute, graphics, mps;
  std::vector<nvml::ProcessUtilizationSample> use;
  std::map<unsigned, std::vector<nvml::Sample>> rings;
  bool gpm = false;
  std::map<unsigned, double> gpm_values;
  std::map<std::string, nvml::Return, std::less<>>
      errors;  // by the name of NvmlApi's member; "*" is every call on this GPU

  void set_field(unsigned id, unsigned long long value) {
    nvml::FieldValue field{};
    field.value_type = nvml::kValueUnsignedLongLong;
    field.value.ull = value;
    fields[id] = field;
  }
};

class FakeNvml {
 public:
  explicit FakeNvml(std::vector<FakeGpu> with) : gpus(std::move(with)) { current() = this; }
  ~FakeNvml() { current() = nullptr; }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  [[nodiscard]] NvmlApi api() const;
  [[nodiscard]] int total_calls() const {
    int sum = 0;
    for (const auto& [name, count] : calls) sum += count;
    return sum;
  }
  static FakeNvml*& current() {
    static FakeNvml* one = nullptr;
    return one;
  }

  std::vector<FakeGpu> gpus;
  std::string driver = "550.54.15";
  std::map<std::string, int, std::less<>> calls;
  std::vector<nvml::EventData> events;
  nvml::Return init_code = nvml::kSuccess;
  int gpm_samples_alive = 0;
  bool open = false;
};

namespace fake {

inline FakeNvml& all() { return *FakeNvml::current(); }

// Without an allocation once the name is known, so that a test can count those of the reader.
inline void count(const char* name) {
  const auto known = all().calls.find(name);
  if (known == all().calls.end())
    all().calls.emplace(name, 1);
  else
    ++known->second;
}

// Counts the call and finds its GPU; the error that the test wants, if any.
inline nvml::Return enter(const char* name, nvml::Device handle, FakeGpu*& gpu) {
  count(name);
  gpu = &all().gpus.at(reinterpret_cast<std::uintptr_t>(handle) - 1);
  for (const char* key : {"*", name}) {
    if (const auto found = gpu->errors.find(key); found != gpu->errors.end()) return found->second;
  }
  return nvml::kSuccess;
}

template <class Body>
nvml::Return on(const char* name, nvml::Device handle, Body body) {
  FakeGpu* gpu = nullptr;
  if (const auto code = enter(name, handle, gpu); code != nvml::kSuccess) return code;
  if constexpr (std::is_void_v<decltype(body(*gpu))>) {
    body(*gpu);
    return nvml::kSuccess;
  } else {
    return body(*gpu);
  }
}

inline void copy(char* out, unsigned size, const std::string& text) {
  std::strncpy(out, text.c_str(), size - 1);
  out[size - 1] = '\0';
}

template <class Entry>
nvml::Return list(const std::vector<nvml::ProcessInfo>& rows, unsigned* count, Entry* out) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(rows.size());
  if (room < rows.size()) return nvml::kInsufficientSize;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out[i] = {};
    out[i].pid = rows[i].pid;
    out[i].used_gpu_memory = rows[i].used_gpu_memory;
  }
  return nvml::kSuccess;
}

template <class Row, class Newer>
nvml::Return newer_rows(const std::vector<Row>& rows, unsigned* count, Row* out, std::size_t capacity, Newer newer) {
  const unsigned room = *count;
  if (out == nullptr) {
    *count = static_cast<unsigned>(capacity);
    return nvml::kInsufficientSize;
  }
  *count = 0;
  for (const auto& row : rows) {
    if (!newer(row)) continue;
    if (*count == room) return nvml::kInsufficientSize;
    out[(*count)++] = row;
  }
  return *count == 0 ? nvml::kNotFound : nvml::kSuccess;
}

inline nvml::Return fields(nvml::Device handle, int count, nvml::FieldValue* values) {
  return on("field_values", handle, [&](FakeGpu& gpu) {
    for (int i = 0; i < count; ++i) {
      const auto found = gpu.fields.find(values[i].field_id);
      if (found == gpu.fields.end()) {
        values[i].result = nvml::kNotSupported;
        continue;
      }
      values[i].value_type = found->second.value_type;
      values[i].value = found->second.value;
      values[i].result = found->second.result;
    }
  });
}

inline nvml::Return gpm_metrics(nvml::GpmMetricsGet* request) {
  count("gpm_metrics");
  if (request->version != 1 || request->sample1 == nullptr || request->sample2 == nullptr ||
      request->sample1 == request->sample2) {
    return nvml::kInvalidArgument;
  }
  for (unsigned i = 0; i < request->num_metrics; ++i) {
    auto& metric = request->metrics[i];
    const auto& values = all().gpus.front().gpm_values;
    const auto found = values.find(metric.metric_id);
    metric.result = found == values.end() ? nvml::kNotSupported : nvml::kSuccess;
    metric.value = found == values.end() ? 0 : found->second;
  }
  return nvml::kSuccess;
}

inline void fill_static(NvmlApi& api) {
  api.init = [] {
    all().open = all().init_code == nvml::kSuccess;
    return all().init_code;
  };
  api.shutdown = [] {
    all().open = false;
    return nvml::kSuccess;
  };
  api.system_driver_version = [](char* out, unsigned size) {
    copy(out, size, all().driver);
    return nvml::kSuccess;
  };
  api.device_count = [](unsigned* count) {
    *count = static_cast<unsigned>(all().gpus.size());
    return nvml::kSuccess;
  };
  api.handle_by_index = [](unsigned index, nvml::Device* handle) {
    FakeGpu* gpu = nullptr;
    *handle = reinterpret_cast<nvml::Device>(static_cast<std::uintptr_t>(index) + 1);
    return enter("handle_by_index", *handle, gpu);
  };
  api.uuid = [](nvml::Device h, char* out, unsigned size) {
    return on("uuid", h, [&](FakeGpu& gpu) { copy(out, size, gpu.uuid); });
  };
  api.name = [](nvml::Device h, char* out, unsigned size) {
    return on("name", h, [&](FakeGpu& gpu) { copy(out, size, gpu.name); });
  };
  api.pci_info = [](nvml::Device h, nvml::PciInfo* pci) {
    return on("pci_info", h, [&](FakeGpu&) { copy(pci->bus_id, sizeof pci->bus_id, "00000000:01:00.0"); });
  };
  api.compute_capability = [](nvml::Device h, int* major, int* minor) {
    return on("compute_capability", h, [&](FakeGpu&) {
      *major = 8;
      *minor = 0;
    });
  };
  api.mig_mode = [](nvml::Device h, unsigned* now, unsigned* pending) {
    return on("mig_mode", h, [&](FakeGpu& gpu) { *now = *pending = gpu.mig; });
  };
  api.persistence_mode = [](nvml::Device h, unsigned* mode) {
    return on("persistence_mode", h, [&](FakeGpu&) { *mode = 1; });
  };
  api.compute_mode = [](nvml::Device h, unsigned* mode) {
    return on("compute_mode", h, [&](FakeGpu&) { *mode = nvml::kComputeModeDefault; });
  };
  api.gpu_cores = [](nvml::Device h, unsigned* cores) {
    return on("gpu_cores", h, [&](FakeGpu& gpu) { *cores = gpu.cores; });
  };
  api.max_clock = [](nvml::Device h, unsigned, unsigned* mhz) {
    return on("max_clock", h, [&](FakeGpu&) { *mhz = 1410; });
  };
}

inline void fill_scalars(NvmlApi& api) {
  api.power_usage = [](nvml::Device h, unsigned* mw) {
    return on("power_usage", h, [&](FakeGpu& gpu) { *mw = gpu.power_mw; });
  };
  api.power_limit = [](nvml::Device h, unsigned* mw) {
    return on("power_limit", h, [&](FakeGpu& gpu) { *mw = gpu.limit_mw; });
  };
  api.energy = [](nvml::Device h, unsigned long long* mj) { return on("energy", h, [&](FakeGpu&) { *mj = 777; }); };
  api.clock = [](nvml::Device h, unsigned, unsigned* mhz) { return on("clock", h, [&](FakeGpu&) { *mhz = 1200; }); };
  api.temperature = [](nvml::Device h, unsigned, unsigned* c) {
    return on("temperature", h, [&](FakeGpu& gpu) { *c = gpu.temperature; });
  };
  api.fan_speed = [](nvml::Device h, unsigned* percent) {
    return on("fan_speed", h, [&](FakeGpu&) { *percent = 30; });
  };
  api.performance_state = [](nvml::Device h, unsigned* state) {
    return on("performance_state", h, [&](FakeGpu&) { *state = 0; });
  };
  api.event_reasons = [](nvml::Device h, unsigned long long* bits) {
    return on("event_reasons", h, [&](FakeGpu& gpu) { *bits = gpu.reasons; });
  };
  api.link_generation = [](nvml::Device h, unsigned* gen) {
    return on("link_generation", h, [&](FakeGpu&) { *gen = 4; });
  };
  api.link_width = [](nvml::Device h, unsigned* width) { return on("link_width", h, [&](FakeGpu&) { *width = 16; }); };
  api.bar1_memory = [](nvml::Device h, nvml::Bar1Memory* memory) {
    return on("bar1_memory", h, [&](FakeGpu&) { *memory = {1ULL << 30U, (1ULL << 30U) - 4096, 4096}; });
  };
  api.ecc_errors = [](nvml::Device h, unsigned, unsigned, unsigned long long* count) {
    return on("ecc_errors", h, [&](FakeGpu&) { *count = 0; });
  };
  api.encoder = [](nvml::Device h, unsigned* percent, unsigned* us) {
    return on("encoder", h, [&](FakeGpu&) { *percent = *us = 0; });
  };
  api.decoder = [](nvml::Device h, unsigned* percent, unsigned* us) {
    return on("decoder", h, [&](FakeGpu&) { *percent = *us = 0; });
  };
}

inline void fill_dynamic(NvmlApi& api) {
  api.utilization = [](nvml::Device h, nvml::Utilization* out) {
    return on("utilization", h, [&](FakeGpu& gpu) { *out = {gpu.util, gpu.memory_util}; });
  };
  api.memory = [](nvml::Device h, nvml::Memory* out) {
    return on("memory", h, [&](FakeGpu& gpu) {
      *out = {gpu.total, gpu.total - gpu.used - gpu.reserved, gpu.used + gpu.reserved};
    });
  };
  api.memory_v2 = [](nvml::Device h, nvml::MemoryV2* out) {
    return on("memory_v2", h, [&](FakeGpu& gpu) {
      if (out->version != 33554472) return nvml::kArgumentVersionMismatch;
      *out = {out->version, gpu.total, gpu.reserved, gpu.total - gpu.used - gpu.reserved, gpu.used};
      return nvml::kSuccess;
    });
  };
  api.field_values = fields;
  api.compute_processes = [](nvml::Device h, unsigned* count, nvml::ProcessInfo* out) {
    return on("compute_processes", h, [&](FakeGpu& gpu) { return list(gpu.compute, count, out); });
  };
  api.graphics_processes = [](nvml::Device h, unsigned* count, nvml::ProcessInfo* out) {
    return on("graphics_processes", h, [&](FakeGpu& gpu) { return list(gpu.graphics, count, out); });
  };
  api.mps_processes = [](nvml::Device h, unsigned* count, nvml::ProcessInfo* out) {
    return on("mps_processes", h, [&](FakeGpu& gpu) { return list(gpu.mps, count, out); });
  };
  api.compute_processes_v2 = [](nvml::Device h, unsigned* count, nvml::ProcessInfo* out) {
    return on("compute_processes_v2", h, [&](FakeGpu& gpu) { return list(gpu.compute, count, out); });
  };
  api.compute_processes_v1 = [](nvml::Device h, unsigned* count, nvml::ProcessInfoV1* out) {
    return on("compute_processes_v1", h, [&](FakeGpu& gpu) { return list(gpu.compute, count, out); });
  };
  api.process_utilization = [](nvml::Device h, nvml::ProcessUtilizationSample* out, unsigned* count,
                               unsigned long long since) {
    return on("process_utilization", h, [&](FakeGpu& gpu) {
      return newer_rows(gpu.use, count, out, 100, [&](const auto& row) { return row.time_stamp > since; });
    });
  };
  api.samples = [](nvml::Device h, unsigned type, unsigned long long since, unsigned* value_type, unsigned* count,
                   nvml::Sample* out) {
    return on("samples", h, [&](FakeGpu& gpu) {
      *value_type = nvml::kValueUnsignedInt;
      return newer_rows(gpu.rings[type], count, out, 120, [&](const auto& row) { return row.time_stamp > since; });
    });
  };
}

inline void fill_gpm_and_events(NvmlApi& api) {
  api.gpm_support = [](nvml::Device h, nvml::GpmSupport* support) {
    return on("gpm_support", h, [&](FakeGpu& gpu) { support->is_supported_device = gpu.gpm ? 1U : 0U; });
  };
  api.gpm_alloc = [](nvml::GpmSample* sample) {
    *sample = reinterpret_cast<nvml::GpmSample>(static_cast<std::uintptr_t>(++all().gpm_samples_alive));
    return nvml::kSuccess;
  };
  api.gpm_free = [](nvml::GpmSample) {
    --all().gpm_samples_alive;
    return nvml::kSuccess;
  };
  api.gpm_sample = [](nvml::Device h, nvml::GpmSample) { return on("gpm_sample", h, [](FakeGpu&) {}); };
  api.gpm_metrics = gpm_metrics;
  api.event_set_create = [](nvml::EventSet* set) {
    *set = reinterpret_cast<nvml::EventSet>(std::uintptr_t{1});
    return nvml::kSuccess;
  };
  api.event_set_free = [](nvml::EventSet) { return nvml::kSuccess; };
  api.register_events = [](nvml::Device h, unsigned long long, nvml::EventSet) {
    return on("register_events", h, [](FakeGpu&) {});
  };
  api.event_set_wait = [](nvml::EventSet, nvml::EventData* data, unsigned) {
    count("event_set_wait");
    if (all().events.empty()) return nvml::kTimeout;
    *data = all().events.front();
    all().events.erase(all().events.begin());
    return nvml::kSuccess;
  };
}

}  // namespace fake

inline NvmlApi FakeNvml::api() const {
  NvmlApi api;
  api.path = "fake";
  fake::fill_static(api);
  fake::fill_scalars(api);
  fake::fill_dynamic(api);
  fake::fill_gpm_and_events(api);
  return api;
}

}  // namespace headroom
