// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <memory>

#include "sim/core/store.h"

namespace headroom::sim {

inline constexpr std::size_t kBinsPerCommit = 48;  // one second of history

// One who may change a device: its number decides which two buffers are its own. Threads must take turns.
struct Writer {
  std::uint32_t number = 0;
  std::unique_ptr<Image> scratch = std::make_unique<Image>();  // after a transaction: the image it saw or published
  std::array<BinRecord, kBinsPerCommit> bins;
};

// Copies the current image, advances it to now, lets `change(image)` change it, and publishes it; again from the start
// if another writer was faster. An error from `change` gives up without publishing, and is returned. Else 0.
template <class F>
int transact(const Store& store, std::uint32_t device, Writer& writer, F change) {
  constexpr int kRetriesBeforeSleep = 8;
  DeviceArea& area = store.area(device);
  Image& image = *writer.scratch;
  for (int attempt = 0;; ++attempt) {
    if (attempt >= kRetriesBeforeSleep) sleep_for(1000 + (clock_now() >> 3) % 50'000);  // as good as random
    const std::uint64_t seen = load(area, image);
    BinSink sink{writer.bins.data(), writer.bins.size()};
    const bool arrived = advance(image, store.header(), device, clock_now(), sink);
    if (arrived) {
      if (const int error = change(image); error != 0) return error;
    }
    if (!commit(area, writer.number, seen, image)) continue;
    flush(area, sink);
    if (arrived) return 0;
    attempt = 0;  // a long time had passed; that was one leg of it
  }
}

}  // namespace headroom::sim
