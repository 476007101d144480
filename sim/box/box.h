// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sim/box/presets.h"
#include "sim/core/store.h"

namespace headroom::sim {

struct BoxOptions {
  BoxPlan plan;
  std::vector<Fault> faults;
  contention::Schedule schedule = contention::Schedule::kRoundRobin;
  Nanos quantum = 2 * kMillisecond;
  ProcessList process_list = ProcessList::kAll;
};

// A box of virtual GPUs: a private directory with the model, the two libraries and the Python module. It exists as long
// as this object; programs that are still attached then keep what they have mapped, but no new one can join.
class Box {
 public:
  [[nodiscard]] static Result<Box> create(const BoxOptions& options);
  Box(Box&& other) noexcept;
  Box& operator=(Box&&) = delete;
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  ~Box();

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const Store& store() const { return store_; }
  // The one descriptor of `alive` in this process: see Janitor.
  [[nodiscard]] int alive_fd() const { return alive_.get(); }
  // "NAME=value" for programs inside, given what this process has.
  [[nodiscard]] std::vector<std::string> environment() const;

 private:
  Box() = default;
  Result<void> write_model(const BoxOptions& options);
  Result<void> claim();
  Result<void> write_files(const std::vector<Fault>& faults);

  std::string directory_;
  Store store_;
  Fd alive_;
};

// Removes the directories of boxes whose supervisor and programs are all gone. Returns how many.
int sweep_stale_boxes();

}  // namespace headroom::sim
