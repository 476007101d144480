// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "view/view.h"

namespace headroom::cli {

// This machine, recorded while somebody looks at it (`top` where nothing is recorded): its GPUs, and the processes and
// stacks of one job on them. A recording is of one job: where another comes onto the GPUs, another recording begins, as
// it does after an hour. They lie in memory where the system has a folder for that, and go with this object; kept ones
// lie where `record` puts them, and stay.
class BoxWatch {
 public:
  struct Options {
    bool keep = false;
    bool stays = false;                // also where a recording is begun elsewhere
    std::optional<std::int64_t> pid;   // the job's; absent: what is on the GPUs
    std::function<bool(Nanos)> pause;  // waits so long; false: it is over
    // So much from before what is shown stays in memory: all that looks for what stands want, and what the begin of the
    // window may rest on. The rest lies in the file.
    Nanos kept = 600 * kSecond;
  };
  // Begins the first recording; returns once the driver has answered. Where there is none the processes of the machine
  // are recorded, or those of the job that was asked for. An error: why there is nothing to look at.
  [[nodiscard]] static Result<std::unique_ptr<BoxWatch>> start(const Options& options);
  ~BoxWatch();  // ends what is being recorded
  BoxWatch(const BoxWatch&) = delete;
  BoxWatch& operator=(const BoxWatch&) = delete;

  // Looks who is on the GPUs, by what is shown, and begins another recording where it has to.
  void look(const view::View& shown);

  struct Begun {
    std::string path;
    std::string name;     // for people: "this machine", "train.py (4711)"
    std::string message;  // why it is another one; "" for the first
  };
  // The recording to be shown next; nothing where the one that is shown is the newest, or the next is too young.
  [[nodiscard]] std::optional<Begun> next() const;
  void shows_next();                         // those before it end
  [[nodiscard]] bool has_found_job() const;  // that is not shown yet
  [[nodiscard]] bool pause(Nanos time) const { return options_.pause(time); }
  [[nodiscard]] Nanos kept() const { return options_.kept; }
  [[nodiscard]] bool was_asked_for() const { return options_.keep || options_.stays || options_.pid; }
  [[nodiscard]] bool owns(const std::string& path) const;
  // Why no GPU is read.
  [[nodiscard]] const std::optional<Error>& no_gpus() const { return no_gpus_; }
  // Why nothing is recorded any more; "".
  [[nodiscard]] std::string trouble() const;

 private:
  struct Recorder;
  explicit BoxWatch(const Options& options);
  [[nodiscard]] std::unique_ptr<Recorder> begin(std::int64_t pid, std::string message, Nanos shown_from);
  void go_on_without_gpus(const Error& why);
  [[nodiscard]] const Recorder& newest() const { return next_ ? *next_ : *shown_; }

  Options options_;
  std::string folder_;  // "" where they are kept
  Fd lock_;             // of the folder: it is in use
  int begun_ = 0;
  std::optional<Error> no_gpus_;
  std::unique_ptr<Recorder> shown_, next_;
};

}  // namespace headroom::cli
