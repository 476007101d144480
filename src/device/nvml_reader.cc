// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/nvml_device.h"
#include "model/events.h"

namespace headroom {

namespace {

constexpr Nanos kDearWait = 5 * kMillisecond;  // asking for events must not wait for one
constexpr int kMaxEvents = 16;                 // in one tick

}  // namespace

Nanos measure_clock_offset() {
  constexpr Nanos kTorn = 20 * kMicrosecond;  // this thread lost its core between the clocks
  Nanos best = 0, width = 0;
  for (int tries = 0; tries < 8 && (tries == 0 || width > kTorn); ++tries) {
    const Nanos before = boottime_now();
    const Nanos wall = realtime_now();
    const Nanos after = boottime_now();
    if (tries > 0 && after - before >= width) continue;
    width = after - before;
    best = before + width / 2 - wall;
  }
  return best;
}

Result<std::unique_ptr<NvmlReader>> NvmlReader::open(NvmlReaderOptions options) {
  HR_TRY(NvmlApi api, NvmlApi::load(options.path));
  return open(std::move(api), std::move(options));
}

Result<std::unique_ptr<NvmlReader>> NvmlReader::open(NvmlApi api, NvmlReaderOptions options) {
  HR_TRY(auto session, NvmlSession::open(std::move(api)));
  std::unique_ptr<NvmlReader> reader(new NvmlReader(std::move(session), std::move(options)));
  reader->open_gpus();
  reader->register_events();
  return reader;
}

NvmlReader::NvmlReader(std::unique_ptr<NvmlSession> session, NvmlReaderOptions options)
    : session_(std::move(session)), options_(std::move(options)), directory_(options_.describe) {
  if (!options_.clock_offset) options_.clock_offset = measure_clock_offset;
}

NvmlReader::~NvmlReader() {
  if (events_ != nullptr) session_->api().event_set_free(events_);
  gpus_.clear();  // before the session: they free what they allocated in the library
}

void NvmlReader::open_gpus() {
  for (std::size_t index = 0; index < session_->handles().size(); ++index) {
    auto device = describe_device(*session_, index, options_.sys_root);
    if (!device) {
      unusable_.push_back(device.error().what);
      continue;
    }
    devices_.push_back(*device);
    gpus_.push_back(std::make_unique<NvmlGpu>(session_->api(), session_->handles()[index], std::move(*device)));
    if (!options_.fine_power) gpus_.back()->leave_out_fine_power();
  }
}

void NvmlReader::register_events() {
  const NvmlApi& api = session_->api();
  if (api.event_set_create == nullptr || api.event_set_free == nullptr || api.register_events == nullptr ||
      api.event_set_wait == nullptr || api.event_set_create(&events_) != nvml::kSuccess) {
    events_ = nullptr;
    return;
  }
  const bool any = std::count_if(gpus_.begin(), gpus_.end(), [&](const auto& gpu) {
                     return api.register_events(gpu->handle(), nvml::kEventXid, events_) == nvml::kSuccess;
                   }) > 0;
  if (any) return;
  api.event_set_free(events_);
  events_ = nullptr;
}

void NvmlReader::read_events(Nanos at, RecordingSink& sink) {
  if (events_ == nullptr || !events_due_.take(at)) return;
  for (int i = 0; i < kMaxEvents; ++i) {
    nvml::EventData data{};
    const Nanos before = monotonic_now();
    const auto code = session_->api().event_set_wait(events_, &data, 0);
    if (monotonic_now() - before > kDearWait) events_due_.period = 60 * kSecond;
    if (code != nvml::kSuccess) return;
    if (data.event_type != nvml::kEventXid) continue;
    const auto gpu =
        std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& one) { return one->handle() == data.device; });
    const SourceId source = gpu == gpus_.end() ? kNoSource : (*gpu)->source();
    sink.add_event(to_event(events::Xid{data.event_data}, at, source));
  }
}

void NvmlReader::ask_all() {
  events_due_.next.reset();
  for (const auto& gpu : gpus_) gpu->ask_all();
}

void NvmlReader::read(Nanos at, RecordingSink& sink) {
  if (!options_.since) options_.since = at;
  if (!unusable_told_) {
    unusable_told_ = true;
    for (const auto& text : unusable_) sink.add_event(to_event(events::Note{.text = text}, at));
  }
  const Nanos offset = options_.clock_offset();
  bool listed = false;
  for (const auto& gpu : gpus_) {
    const bool was_lost = gpu->lost();
    const Look look{session_->api(), gpu->handle(), at, offset, sink};
    listed = gpu->read(look, *options_.since, directory_) || listed;
    if (gpu->lost() && !was_lost) events_due_.next.reset();  // an XID says why
  }
  if (listed) directory_.end_round();
  read_events(at, sink);
}

}  // namespace headroom
