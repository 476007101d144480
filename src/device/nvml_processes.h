// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/nvml_read.h"
#include "model/entities.h"

namespace headroom {

using DescribeProcess = std::function<std::optional<Process>(std::int64_t pid)>;

// Who the processes on the GPUs are: each new pid is described once, and announced as a kProcess source.
class ProcessDirectory {
 public:
  explicit ProcessDirectory(DescribeProcess describe) : describe_(std::move(describe)) {}

  // The start of the process, where it could be described.
  std::optional<Nanos> start_of(std::int64_t pid, RecordingSink& sink);
  // Ends a round in which every listed pid was looked up: what was not is forgotten, since its pid may be used again.
  void end_round();

 private:
  struct Known {
    std::optional<Nanos> start;
    std::uint64_t round = 0;
  };
  DescribeProcess describe_;
  std::map<std::int64_t, Known> known_;
  std::uint64_t round_ = 1;
};

// What the driver tells of who computes on a GPU.
enum class Owners {
  kSomebody,   // a process that can be looked at
  kStrangers,  // numbers of no process that can be seen here: of another pid namespace, or hidden
  kNobody,
  kUnlisted,  // there is none: WSL2, old drivers
  kNotRead,   // this time
};

// The driver's process lists of one GPU, and how much of it each process used.
class GpuProcesses {
 public:
  // `scrambled`: this driver's third version of the lists cannot be used.
  GpuProcesses(const NvmlApi& api, bool scrambled, bool mig);

  // Reads the lists that are due, adds a row per process listed, and puts the counts into the GPU's `row`.
  // False when none was due.
  bool read(const Look& look, const std::string& uuid, SourceId gpu, ProcessDirectory& directory, Row& row);
  // By the lists as they were read last; desktop programs do not count.
  [[nodiscard]] Owners seen() const;
  // Forgets when each list is due: the next read asks for all.
  void ask_all();

 private:
  struct Entry {
    unsigned pid = 0;
    unsigned long long memory = 0;
  };
  using ListV3 = nvml::Return (*)(nvml::Device, unsigned*, nvml::ProcessInfo*);
  using ListV1 = nvml::Return (*)(nvml::Device, unsigned*, nvml::ProcessInfoV1*);
  struct List {
    ContextKind kind = ContextKind::kCompute;
    Due due;
    ListV3 newer = nullptr;
    ListV1 oldest = nullptr;
    std::vector<Entry> entries = {};
    nvml::Return code = nvml::kFunctionNotFound;
    bool fresh = false;
    bool off = false;
  };
  struct Context {
    unsigned pid = 0;
    ContextKind kind = ContextKind::kCompute;
    unsigned long long memory = 0;
    bool merged = false;  // has the kind and memory of the lists as they are now
    bool seen = false;    // in a list that was read now
    std::optional<Nanos> start = {};
    SourceId source = kNoSource;
    bool used = false;  // sm and memory utilisation were reported now
    unsigned long long stamp = 0;
    unsigned sm = 0, memory_util = 0;
  };

  void read_list(const Look& look, List& list);
  nvml::Return fetch(const Look& look, List& list);
  void merge();
  void read_utilization(const Look& look);
  void add_rows(const Look& look, const std::string& uuid, SourceId gpu, ProcessDirectory& directory);
  void put_counts(Row& row) const;
  Context* find(unsigned pid);

  static constexpr std::size_t kComputeList = 1;
  std::vector<List> lists_;  // in the order of precedence: MPS, compute, graphics
  std::vector<Context> contexts_;
  Row row_;
  std::vector<nvml::ProcessInfo> buffer_;
  std::vector<nvml::ProcessInfoV1> buffer_v1_;
  std::vector<nvml::ProcessUtilizationSample> util_buffer_;
  Due util_due_{2 * kSecond};
  bool util_off_;
  bool util_fresh_ = false;
  Absent util_absent_ = Absent::kNotSupported;
  unsigned long long util_last_ = 0;  // the driver's time stamp, CLOCK_REALTIME in microseconds
};

}  // namespace headroom
