// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/strings.h"
#include "import/kineto_frames.h"
#include "import/trace.h"
#include "import/trace_builder.h"
#include "model/bounds.h"

namespace headroom {

namespace {

// "1712195495505583.123" microseconds as nanoseconds, digit by digit: a double has too few of them for a time of today.
std::optional<Nanos> nanos_of(std::string_view microseconds) {
  const bool negative = microseconds.starts_with('-');
  if (negative) microseconds.remove_prefix(1);
  const auto point = microseconds.find('.');
  Nanos whole = 0, part = 0;
  const std::string_view digits = microseconds.substr(0, point);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || whole > kLatest / kMicrosecond)
    return std::nullopt;  // an exponent, or a time that cannot be
  if (point != std::string_view::npos) {
    Nanos unit = kMicrosecond / 10;
    bool rounds = false;
    for (const char digit : microseconds.substr(point + 1)) {
      if (digit < '0' || digit > '9') return std::nullopt;
      part += unit > 0 ? unit * (digit - '0') : rounds && digit >= '5' ? 1 : 0;
      rounds = unit > 0;  // by the first digit beyond nanoseconds
      unit /= 10;
    }
  }
  const Nanos sum = whole * kMicrosecond + part;
  return negative ? -sum : sum;
}

// What an event of the trace says, as far as it matters here.
struct TraceEvent {
  std::string phase, category, name, called;  // called: by an event that names a process or a thread
  std::optional<Nanos> at, length;
  std::optional<std::int64_t> pid, tid, device, correlation;
};

enum class Key { kOther, kPhase, kCategory, kName, kPid, kTid, kAt, kLength, kDevice, kCorrelation };

Key key_of_event(std::string_view key) {
  if (key == "ph") return Key::kPhase;
  if (key == "cat") return Key::kCategory;
  if (key == "name") return Key::kName;
  if (key == "pid") return Key::kPid;
  if (key == "tid") return Key::kTid;
  if (key == "ts") return Key::kAt;
  if (key == "dur") return Key::kLength;
  return Key::kOther;
}

Key key_of_args(std::string_view key) {
  if (key == "device") return Key::kDevice;
  if (key == "correlation") return Key::kCorrelation;
  if (key == "name") return Key::kName;
  return Key::kOther;
}

// PyTorch before 1.11 had other words.
std::string_view category_of(std::string_view written) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEarlier{{{"Kernel", "kernel"},
                                                                                   {"Memcpy", "gpu_memcpy"},
                                                                                   {"Memset", "gpu_memset"},
                                                                                   {"Runtime", "cuda_runtime"},
                                                                                   {"Operator", "cpu_op"}}};
  for (const auto& [earlier, now] : kEarlier)
    if (written == earlier) return now;
  return written;
}

// "Memcpy HtoD (Pageable -> Device)"
GpuWork copy_of(std::string_view name) {
  const bool pageable = name.find("Pageable") != std::string_view::npos;
  if (name.find("HtoD") != std::string_view::npos)
    return pageable ? GpuWork::kPageableToDevice : GpuWork::kCopyToDevice;
  if (name.find("DtoH") != std::string_view::npos) return pageable ? GpuWork::kPageableToHost : GpuWork::kCopyToHost;
  return name.find("PtoP") != std::string_view::npos ? GpuWork::kCopyToPeer : GpuWork::kCopyOnDevice;
}

bool is_with_host(GpuWork work) {
  return work == GpuWork::kCopyToDevice || work == GpuWork::kPageableToDevice || work == GpuWork::kCopyToHost ||
         work == GpuWork::kPageableToHost;
}

std::optional<GpuWork> work_of(std::string_view category, std::string_view name) {
  if (category == "kernel") return is_communication(name) ? GpuWork::kCommunication : GpuWork::kKernel;
  if (category == "gpu_memcpy") return copy_of(name);
  if (category == "gpu_memset") return GpuWork::kMemset;
  return std::nullopt;
}

constexpr std::string_view kXlaGpu = "/device:GPU:";

// Takes the trace's JSON token by token.
class KinetoReader {
 public:
  KinetoReader(const std::string& name) : builder_(name, "kineto", "PyTorch's profiler") {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t value) { return number(value, fmt::format_int(value).c_str()); }
  bool number_unsigned(std::uint64_t value) {
    const bool fits = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return number(fits ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt,
                  fmt::format_int(value).c_str());
  }
  bool number_float(double, const std::string& digits) { return number(std::nullopt, digits); }
  bool binary(std::vector<std::uint8_t>&) { return true; }
  bool string(std::string& value);
  bool start_object(std::size_t);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool key(std::string& name);
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    stopped_at_ = position;
    return false;
  }

  [[nodiscard]] Result<Recording> finish(const std::string& name, const std::string& cut);

 private:
  enum class Place { kTop, kEvents, kEvent, kArgs, kDevices, kDevice, kDistributed, kElsewhere };
  bool number(std::optional<std::int64_t> whole, std::string_view digits);
  void event_number(std::optional<std::int64_t> whole, std::string_view digits);
  void device_number(std::int64_t value);
  void event_done();
  void take_xla();
  void take_xla_host();
  void note_host_copy(GpuWork work);
  [[nodiscard]] std::string python_function(std::string_view category) const;
  void use();
  [[nodiscard]] Place place() const {
    return depth_ == 0 || depth_ > kinds_.size() ? Place::kElsewhere : kinds_.back();
  }

  TraceBuilder builder_;
  std::vector<Place> kinds_;  // of the containers that are open and matter; others only count
  std::size_t depth_ = 0;
  std::string key_;  // of the top, a device or distributedInfo
  Key event_key_ = Key::kOther;
  TraceEvent event_;
  std::optional<std::int64_t> device_id_, major_;
  Device device_;
  Nanos base_ = 0;
  std::int64_t events_ = 0;
  std::optional<std::size_t> stopped_at_;
  bool saw_events_ = false, of_xla_ = false, of_jax_ = false, of_tensorflow_ = false, cuda_calls_ = false;
  std::set<std::int64_t> all_streams_;                           // processes whose threads are all streams
  std::map<std::int64_t, int> xla_gpus_;                         // by process
  std::set<std::pair<std::int64_t, std::int64_t>> xla_streams_;  // process and thread
  bool host_copies_ = false, all_pinned_ = true;                 // copies from and to the host, by their names
};

bool KinetoReader::start_object(std::size_t) {
  const Place within = depth_ == 0 ? Place::kElsewhere : place();
  ++depth_;
  if (depth_ == 1)
    kinds_.push_back(Place::kTop);
  else if (depth_ - 1 > kinds_.size())
    return true;
  else if (within == Place::kTop && key_ == "distributedInfo")
    kinds_.push_back(Place::kDistributed);
  else if (within == Place::kEvents)
    kinds_.push_back(Place::kEvent), event_ = {};
  else if (within == Place::kDevices)
    kinds_.push_back(Place::kDevice), device_ = {}, device_id_.reset(), major_.reset();
  else if (within == Place::kEvent && key_ == "args")
    kinds_.push_back(Place::kArgs);
  return true;
}

bool KinetoReader::start_array(std::size_t) {
  const Place within = depth_ == 0 ? Place::kElsewhere : place();
  ++depth_;
  if (depth_ != kinds_.size() + 1) return true;
  if (depth_ == 1)
    kinds_.push_back(Place::kEvents), saw_events_ = true;  // Chrome's other form: events and nothing else
  if (within == Place::kTop && key_ == "traceEvents") kinds_.push_back(Place::kEvents), saw_events_ = true;
  if (within == Place::kTop && key_ == "deviceProperties") kinds_.push_back(Place::kDevices);
  return true;
}

bool KinetoReader::end_array() {
  if (depth_ == kinds_.size()) kinds_.pop_back();
  --depth_;
  return true;
}

bool KinetoReader::end_object() {
  if (depth_ == kinds_.size()) {
    if (place() == Place::kEvent) event_done();
    if (place() == Place::kDevice && device_id_ && *device_id_ >= 0 && *device_id_ < 1024)
      builder_.device(static_cast<int>(*device_id_)) = device_;
    kinds_.pop_back();
  }
  --depth_;
  return true;
}

bool KinetoReader::key(std::string& name) {
  switch (place()) {
    case Place::kEvent:
      event_key_ = key_of_event(name);
      key_ = name == "args" ? "args" : "";
      break;
    case Place::kArgs:
      event_key_ = key_of_args(name);
      break;
    case Place::kTop:
    case Place::kDevice:
    case Place::kDistributed:
      key_ = name;
      break;
    default:
      break;
  }
  return true;
}

bool KinetoReader::string(std::string& value) {
  switch (place()) {
    case Place::kEvent:
      if (event_key_ == Key::kPhase) event_.phase.swap(value);
      if (event_key_ == Key::kCategory) event_.category.swap(value);
      if (event_key_ == Key::kName) event_.name.swap(value);
      if (event_key_ == Key::kPid) event_.pid = parse_number<std::int64_t>(value);  // PyTorch before 1.11
      if (event_key_ == Key::kTid) event_.tid = parse_number<std::int64_t>(value);
      break;
    case Place::kArgs:
      if (event_key_ == Key::kName) event_.called.swap(value);
      break;
    case Place::kTop:
      if (key_ == "host_name" || key_ == "hostname") builder_.host = value;
      break;
    case Place::kDevice:
      if (key_ == "name") device_.name = value;
      break;
    case Place::kDistributed:
      if (key_ == "backend") builder_.extra()["backend"] = value;
      break;
    default:
      break;
  }
  return true;
}

bool KinetoReader::number(std::optional<std::int64_t> whole, std::string_view digits) {
  switch (place()) {
    case Place::kEvent:
    case Place::kArgs:
      event_number(whole, digits);
      break;
    case Place::kTop:
      if (whole && key_ == "baseTimeNanoseconds" && *whole >= 0 && *whole <= kLatest) base_ = *whole;
      break;
    case Place::kDevice:
      if (whole) device_number(*whole);
      break;
    case Place::kDistributed:
      if (whole && (key_ == "rank" || key_ == "world_size")) builder_.extra()[key_] = fmt::format("{}", *whole);
      break;
    default:
      break;
  }
  return true;
}

void KinetoReader::event_number(std::optional<std::int64_t> whole, std::string_view digits) {
  if (event_key_ == Key::kAt) event_.at = nanos_of(digits);
  if (event_key_ == Key::kLength) event_.length = nanos_of(digits);
  if (event_key_ == Key::kPid) event_.pid = whole;
  if (event_key_ == Key::kTid) event_.tid = whole;
  if (event_key_ == Key::kDevice) event_.device = whole;
  if (event_key_ == Key::kCorrelation) event_.correlation = whole;
}

void KinetoReader::device_number(std::int64_t value) {
  if (key_ == "id") device_id_ = value;
  if (key_ == "totalGlobalMem" && value > 0) device_.memory_total_bytes = value;
  if (key_ == "computeMajor") major_ = value;
  if (key_ == "computeMinor" && major_) device_.compute_capability = fmt::format("{}.{}", *major_, value);
}

void KinetoReader::event_done() {
  if (event_.phase == "M" && event_.name == "process_name" && event_.pid) {
    of_xla_ = of_xla_ || event_.called.starts_with("/device:") || event_.called.starts_with("/host:");
    // A timeline of TensorFlow 1: "/device:GPU:0/stream:all Compute", whose threads are all streams.
    const auto gpu = event_.called.find("/device:GPU:");
    if (gpu != std::string::npos && event_.called.find("/stream:", gpu) != std::string::npos) {
      const std::string_view number = std::string_view(event_.called).substr(gpu + kXlaGpu.size());
      xla_gpus_[*event_.pid] = parse_number<int>(number.substr(0, number.find('/'))).value_or(0);
      all_streams_.insert(*event_.pid);
      of_xla_ = true;
    } else if (event_.called.starts_with(kXlaGpu) && event_.called.find(' ') == std::string::npos)
      xla_gpus_[*event_.pid] = parse_number<int>(std::string_view(event_.called).substr(kXlaGpu.size())).value_or(0);
    builder_.process_name(*event_.pid, event_.called);
  }
  if (event_.phase == "M" && event_.name == "thread_name" && event_.pid && event_.tid)
    if (event_.called.starts_with("Stream #")) xla_streams_.emplace(*event_.pid, *event_.tid);
  if (event_.phase == "X") use();
}

// Work of a GPU in a trace of XLA: what stands in a stream of a "/device:GPU:0". The lines of modules and operators
// beside the streams tell the same once more. On the host JAX's tracer of Python marks functions, and calls of compiled
// ones, which give work to the GPUs.
void KinetoReader::take_xla() {
  if (event_.name.starts_with('$')) event_.category = "python_function";
  if (event_.name.starts_with("PjitFunction(")) event_.category = "cuda_runtime", event_.name.insert(0, "Launch of ");
  const auto gpu = event_.pid ? xla_gpus_.find(*event_.pid) : xla_gpus_.end();
  if (gpu == xla_gpus_.end()) return take_xla_host();
  if (!event_.tid || (!all_streams_.contains(*event_.pid) && !xla_streams_.contains({*event_.pid, *event_.tid})))
    return;
  if (all_streams_.contains(*event_.pid)) xla_streams_.emplace(*event_.pid, *event_.tid);
  event_.category = event_.name.starts_with("Memcpy")   ? "gpu_memcpy"
                    : event_.name.starts_with("Memset") ? "gpu_memset"
                                                        : "kernel";
  for (const auto& [short_name, name] : {std::pair{"H2D", "HtoD"}, std::pair{"D2H", "DtoH"}})
    if (event_.name.find(short_name) != std::string::npos && event_.category == "gpu_memcpy") event_.name = name;
  event_.device = gpu->second;
  event_.correlation.reset();  // the calls that launch have no category
}

// jax.profiler.TraceAnnotation("next_batch"), by the form of a name that somebody gave: what the runtime names has
// capitals, colons, brackets or points.
bool is_marked_in_jax(std::string_view name) {
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ' ' || c == '-';
  });
}

// TensorFlow's own names on the host: its input, and calls of CUDA that launch or wait.
void KinetoReader::take_xla_host() {
  const std::string& name = event_.name;
  const bool input = name.find("IteratorGetNext") != std::string::npos || name.starts_with("Iterator::") ||
                     name.starts_with("OptionalGetNext");
  const bool cuda =
      name.size() > 2 && name.starts_with("cu") && (name.starts_with("cuda") || (name[2] >= 'A' && name[2] <= 'Z'));
  if (input) event_.category = "cpu_op", of_tensorflow_ = true;
  if (cuda && event_.category.empty()) event_.category = "cuda_runtime", cuda_calls_ = true;
  if (event_.category.empty() && is_marked_in_jax(name)) event_.category = "user_annotation";
  of_tensorflow_ = of_tensorflow_ || name.starts_with("EagerKernelExecute") || name.starts_with("EagerLocalExecute") ||
                   name.starts_with("FunctionRun");
  of_jax_ = of_jax_ || name.starts_with("Launch of PjitFunction(") || name.starts_with('$');
}

// Copies from and to the host are of pinned memory, or not, by their names.
void KinetoReader::note_host_copy(GpuWork work) {
  if (!is_with_host(work)) return;
  host_copies_ = true;
  all_pinned_ = all_pinned_ && event_.name.find("Pinned") != std::string::npos;
}

std::string KinetoReader::python_function(std::string_view category) const {
  if (category != "python_function") return "";
  return of_xla_ ? frame_of_jax(event_.name) : frame_of_kineto(event_.name);
}

void KinetoReader::use() {
  if (of_xla_) take_xla();
  const std::string_view category = category_of(event_.category);
  const auto work = work_of(category, event_.name);
  if (work) note_host_copy(*work);
  const bool call = category == "cuda_runtime" || category == "cuda_driver";
  const bool op = category == "cpu_op", annotation = category == "user_annotation";
  const std::string function = python_function(category);
  if (!work && !call && !op && !annotation && function.empty()) {
    builder_.other_annotations = builder_.other_annotations || of_xla_ || category.find("annotation") != category.npos;
    return;
  }
  ++events_;
  const auto bad = [&](std::string_view what) {
    builder_.losses().add(LossKind::kUnreadableEvent, 1,
                          [&] { return fmt::format("first: {} '{}' {}", category, event_.name, what); });
  };
  if (!event_.at || !event_.length || *event_.length < 0 || *event_.length > kLatest - std::abs(*event_.at))
    return bad("without a time or a length that can be read");
  const Nanos begin = *event_.at, end = begin + *event_.length;
  const auto correlation =
      static_cast<TraceBuilder::Correlation>(std::max<std::int64_t>(0, event_.correlation.value_or(0)));
  if (work) {
    const auto device = event_.device ? event_.device : event_.pid;
    if (!device || *device < 0 || *device >= 1024) return bad("that does not say on which GPU it was");
    return builder_.work(static_cast<int>(*device), *work, begin, end, correlation);
  }
  if (!event_.pid || !event_.tid) return;  // of no thread
  const TraceBuilder::Thread thread{*event_.pid, *event_.tid};
  if (call) return builder_.call(thread, event_.name, begin, end, correlation);
  if (op) return builder_.op(thread, event_.name, begin, end);
  if (!function.empty()) return builder_.function(thread, function, begin, end);
  builder_.annotation(thread, event_.name, begin, end);
  if (event_.name.starts_with("ProfilerStep#")) builder_.step(thread, begin, end);
}

Result<Recording> KinetoReader::finish(const std::string& name, const std::string& cut) {
  if (saw_events_ && events_ == 0 && of_xla_)
    return fail(
        Errc::kInvalidInput,
        fmt::format("{}: a trace of JAX or TensorFlow (XLA) without work in the streams of a GPU", name),
        "headroom run -- CMD records the job itself; nsys profile --trace=cuda, then nsys export --type sqlite, "
        "gives a trace that is read");
  if (!saw_events_ || (events_ == 0 && !stopped_at_))
    return fail(Errc::kInvalidInput,
                fmt::format("{}: a JSON file without an event that PyTorch's profiler writes", name),
                "torch.profiler.profile(...).export_chrome_trace(\"trace.json\") writes one");
  if (!xla_streams_.empty()) {
    builder_.written_by(of_tensorflow_ ? "TensorFlow" : of_jax_ ? "JAX" : "JAX or TensorFlow");
    if (!cuda_calls_) builder_.extra()["calls"] = "not read";
  }
  if (stopped_at_) {
    const std::string why = cut.empty() ? "the JSON ends or breaks there" : cut;
    builder_.losses().add(LossKind::kTruncatedTrace, 1, [&] {
      return fmt::format("from byte {} on: {}; {} events before it are used", *stopped_at_, why, events_);
    });
  }
  if (host_copies_ && all_pinned_) builder_.extra()["host_copies"] = "pinned";
  auto recording = builder_.finish(base_, "trace");
  return recording;
}

// Characters of a stream, for a parser that wants iterators.
class Characters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Characters() = default;
  explicit Characters(ByteStream& bytes) : bytes_(&bytes) { fill(); }
  reference operator*() const { return *at_; }
  Characters& operator++() {
    if (++at_ == end_) fill();
    return *this;
  }
  Characters operator++(int) {
    Characters before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Characters& other) const { return at_ == other.at_; }

 private:
  void fill() {
    const std::string_view block = bytes_->next();
    at_ = block.empty() ? nullptr : block.data();
    end_ = at_ + block.size();
  }
  ByteStream* bytes_ = nullptr;
  const char *at_ = nullptr, *end_ = nullptr;
};

}  // namespace

bool is_kineto(std::string_view head) {
  head = trim(head);
  const auto has = [&](std::string_view part) { return head.find(part) != std::string_view::npos; };
  if (head.starts_with('[')) return has("\"ph\"");
  if (!head.starts_with('{')) return false;
  return has("\"traceEvents\"") ||
         (has("\"schemaVersion\"") && (has("\"deviceProperties\"") || has("\"distributedInfo\"")));
}

Result<Recording> read_kineto(const std::string& name, ByteStream& bytes) {
  KinetoReader reader(name);
  nlohmann::json::sax_parse(Characters(bytes), Characters(), &reader);
  return reader.finish(name, bytes.cut());
}

}  // namespace headroom
