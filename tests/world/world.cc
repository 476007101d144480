// SPDX-License-Identifier: Apache-2.0
#include "tests/world/world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "device/nvml_reader.h"

namespace headroom {

namespace {

constexpr Nanos kBegin = 1000 * kSecond;
constexpr double kTicks = 100;     // of /proc, per second
constexpr int kRingPerSecond = 6;  // samples of the driver's ring
constexpr double kIdleWatts = 60, kBusyWatts = 300;

std::vector<FakeGpu> gpus_of(int count) {
  std::vector<FakeGpu> gpus;
  for (int i = 0; i < count; ++i) {
    FakeGpu gpu;
    gpu.uuid = fmt::format("GPU-11111111-0000-0000-0000-00000000000{}", i + 1);
    gpu.util = 0;
    nvml::ProcessInfo process{};
    process.pid = World::kPid;
    process.used_gpu_memory = gpu.used;
    if (i == 0) gpu.compute.push_back(process);
    gpus.push_back(gpu);
  }
  return gpus;
}

// The fields of /proc/PID/stat that are read, as proc(5) numbers them: 14 is the CPU time, 20 the threads, 22 the
// start.
std::string stat_text(char state, double cpu) {
  return fmt::format(
      "{} (python3) {} 1 100 100 0 -1 4194304 0 0 0 0 {} 0 0 0 20 0 1 0 {} 93081600 3047 18446744073709551615 "
      "1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
      World::kPid, state, static_cast<std::int64_t>(cpu * kTicks),
      static_cast<std::int64_t>(static_cast<double>(kBegin / kSecond) * kTicks));
}

}  // namespace

World::File::File(const std::string& path) : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {}

void World::File::write(const std::string& text) {
  if (text == written_) return;
  [[maybe_unused]] const ssize_t put = ::pwrite(fd_.get(), text.data(), text.size(), 0);
  if (text.size() < written_.size()) {
    [[maybe_unused]] const int cut = ::ftruncate(fd_.get(), static_cast<off_t>(text.size()));
  }
  written_ = text;
}

World::World(int gpus, int cores) : cores_(cores), nvml_(gpus_of(gpus)), energy_(static_cast<std::size_t>(gpus)) {
  clock_.now = kBegin;
  make_folder();
  write_process({});
  write_machine({});
  host::TreeOptions tree_options;
  tree_options.root = root_;
  tree_options.pids = {kPid};
  auto tree = std::make_unique<host::TreeReader>(std::move(tree_options));
  NvmlReaderOptions gpu_options;
  gpu_options.describe = [raw = tree.get()](std::int64_t pid) { return raw->describe(pid); };
  gpu_options.since = kBegin;
  gpu_options.sys_root = root_ + "/sys";
  gpu_options.clock_offset = [] { return Nanos{0}; };
  auto reader = NvmlReader::open(nvml_.api(), std::move(gpu_options));
  sampler_ = std::make_unique<Sampler>(clock_, sink_,
                                       SamplerOptions{.cost = [] { return OwnCost{.cpu = 0, .rss_bytes = 4096}; }});
  if (reader) sampler_->add(std::move(*reader));
  sampler_->add(std::move(tree));
  sampler_->add(std::make_unique<host::HostReader>(host::HostOptions{.root = root_, .job_pid = kPid}));
  sink_.add_event({.at = kBegin, .kind = "job_start", .attrs = {{"pid", fmt::format("{}", kPid)}}});
  sampler_->tick();
}

World::~World() {
  sampler_.reset();  // before the driver that it asks
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void World::make_folder() {
  std::string name = "/dev/shm/headroom-world-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    name = (std::filesystem::temp_directory_path() / "headroom-world-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return;
  }
  root_ = name;
  const std::string proc = root_ + "/proc", process = fmt::format("{}/{}", proc, kPid);
  for (const std::string& folder :
       {fmt::format("{}/task/{}", process, kPid), proc + "/pressure", proc + "/self", proc + "/sys/kernel"})
    std::filesystem::create_directories(folder);
  File(proc + "/loadavg").write("1.00 1.00 1.00 1/100 200\n");
  File(proc + "/meminfo").write("MemTotal: 67108864 kB\nMemFree: 60000000 kB\nMemAvailable: 60000000 kB\n");
  File(proc + "/sys/kernel/osrelease").write("6.1.0\n");
  File(proc + "/self/status").write("NSpid:\t1\n");
  File(process + "/status").write(fmt::format("Name:\tpython3\nTgid:\t{0}\nUid:\t0 0 0 0\nNSpid:\t{0}\n", kPid));
  File(process + "/cmdline").write(std::string("python3\0train.py\0", 17));
  File(process + "/io").write("rchar: 0\nwchar: 0\nread_bytes: 0\nwrite_bytes: 0\n");
  stat_ = File(process + "/stat");
  schedstat_ = File(process + "/schedstat");
  wchan_ = File(process + "/wchan");
  thread_stat_ = File(fmt::format("{}/task/{}/stat", process, kPid));
  machine_stat_ = File(proc + "/stat");
}

void World::write_process(const Doing& doing) {
  const std::string stat = stat_text(doing.state, cpu_);
  stat_.write(stat);
  thread_stat_.write(stat);
  schedstat_.write(fmt::format("{} 0 1\n", static_cast<std::int64_t>(cpu_ * static_cast<double>(kSecond))));
  wchan_.write(doing.wait.empty() ? "0" : doing.wait);
}

void World::write_machine(const Doing&) {
  const double busy = cpu_ + other_cpu_;
  const double passed = static_cast<double>(clock_.now - kBegin) / static_cast<double>(kSecond);
  const double idle = passed * cores_ - busy;
  std::string text = fmt::format("cpu  {} 0 0 {} 0 0 0 0 0 0\n", static_cast<std::int64_t>(busy * kTicks),
                                 static_cast<std::int64_t>(idle * kTicks));
  for (int core = 0; core < cores_; ++core)
    text += fmt::format("cpu{} {} 0 0 {} 0 0 0 0 0 0\n", core, static_cast<std::int64_t>(busy / cores_ * kTicks),
                        static_cast<std::int64_t>(idle / cores_ * kTicks));
  machine_stat_.write(text);
}

// The second that ended now, as the driver tells of it.
void World::let_gpus(const Doing& doing) {
  for (std::size_t i = 0; i < nvml_.gpus.size(); ++i) {
    FakeGpu& gpu = nvml_.gpus[i];
    const double busy = i < doing.gpus_busy.size() ? doing.gpus_busy[i] : 0;
    const double watts = kIdleWatts + busy * (kBusyWatts - kIdleWatts);
    energy_[i] += watts;
    gpu.util = static_cast<unsigned>(busy * 100);
    gpu.power_mw = static_cast<unsigned>(watts * 1000);
    gpu.set_field(nvml::kFieldEnergy, static_cast<unsigned long long>(energy_[i] * 1000));
    auto& ring = gpu.rings[nvml::kGpuUtilizationSamples];
    constexpr std::size_t kRoom = 120;  // as the driver keeps it
    if (ring.size() + kRingPerSecond > kRoom) ring.erase(ring.begin(), ring.begin() + kRingPerSecond);
    for (int part = 1; part <= kRingPerSecond; ++part) {
      nvml::Sample sample{};
      sample.time_stamp =
          static_cast<unsigned long long>((clock_.now - kSecond + part * kSecond / kRingPerSecond) / kMicrosecond);
      sample.value.ui = gpu.util;
      ring.push_back(sample);
    }
  }
}

void World::pass(int seconds, const Doing& doing) {
  for (int i = 0; i < seconds; ++i) {
    clock_.now += kSecond;
    cpu_ += doing.cpu;
    other_cpu_ += doing.other_cpu;
    steps_ += doing.steps;
    write_process(doing);
    write_machine(doing);
    let_gpus(doing);
    sampler_->tick();
    if (steps_ <= 0) continue;
    if (marks_ == kNoSource)
      marks_ = sink_.add_source(
          {.kind = SourceKind::kMarks,
           .key = fmt::format("{0}/{1}/{0}/marks", kPid, kBegin),
           .parent =
               sink_.recording().find(SourceKind::kProcess, fmt::format("{}/{}", kPid, kBegin)).value_or(kNoSource),
           .attrs = {{"pid", fmt::format("{}", kPid)}, {"tid", fmt::format("{}", kPid)}, {"via", "marks"}}});
    const std::array cells{Cell{Metric::kSteps, static_cast<std::int64_t>(steps_), std::nullopt}};
    sink_.add_row(marks_, clock_.now, cells);
  }
}

Recording World::end(int exit_code) {
  sampler_->finish();
  sink_.add_event({.at = clock_.now, .kind = "job_end", .attrs = {{"exit_code", fmt::format("{}", exit_code)}}});
  RecordingMeta meta;
  meta.id = "0123456789abcdef";
  meta.origin = "run";
  meta.writer = "headroom";
  meta.host = "box";
  meta.command = {"python3", "train.py"};
  meta.tiers = "NP";
  meta.start = kBegin;
  meta.end = clock_.now;
  meta.start_realtime = 1'790'000'000 * kSecond;
  meta.interval = kSecond;
  meta.job_pid = kPid;
  meta.exit_code = exit_code;
  meta.stop_reason = "job_ended";
  sink_.set_meta(meta);
  return sink_.take();
}

}  // namespace headroom
