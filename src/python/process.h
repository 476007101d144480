// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "python/known_files.h"
#include "python/walker.h"

namespace headroom::python {

// A thread's stack at one instant.
struct ThreadStack {
  std::int64_t tid = 0;  // in our pid namespace
  bool main = false;     // of the process
  Gil gil = Gil::kUnknown;
  bool cut = false;
  bool same = false;                  // as the last one of this thread
  const std::vector<CodeId>* frames;  // outermost first; lives until the next sample
};

struct StackSample {
  std::vector<ThreadStack> stacks;
  std::size_t rejected = 0;        // torn: they changed while they were read
  std::size_t left_out = 0;        // threads beyond kMostThreads, or whose number could not be told
  bool more_interpreters = false;  // sub-interpreters, which are not read
};

// A process that runs CPython 3.8 to 3.14, looked at from outside: it is neither stopped nor traced, and cannot notice.
class PythonProcess {
 public:
  // kNotFound: there is no Python in it. kBusy: none that has started yet. kNoPermission: `what` and `hint` say why,
  // and what helps. kUnsupported: a Python that cannot be read, or another machine's. kIo: it is gone.
  // `files` are those of earlier calls, which need not be read again; null: there were none.
  [[nodiscard]] static Result<PythonProcess> attach(std::int64_t pid, LinesOf lines = LinesOf::kOwnCode,
                                                    KnownFiles* files = nullptr);

  enum class Outcome : std::uint8_t {
    kRead,
    kNothing,  // no interpreter there (any more, or yet), or its threads changed meanwhile: counted as rejected
    kGone,     // the process has ended, or its memory is another program's
  };
  [[nodiscard]] Outcome sample(StackSample& sample);

  [[nodiscard]] std::int64_t pid() const { return pid_; }
  [[nodiscard]] const std::string& version() const { return version_; }  // "3.11"
  [[nodiscard]] const std::string& text(CodeId id) const { return walker_->codes().text(id); }
  [[nodiscard]] std::size_t system_calls() const { return walker_->system_calls(); }

  PythonProcess(PythonProcess&&) noexcept;
  PythonProcess& operator=(PythonProcess&&) noexcept;
  ~PythonProcess();

 private:
  struct Tid {
    Address state = 0;
    std::uint64_t thread_id = 0, native_id = 0;
    std::int64_t tid = 0;  // 0: not known
    std::size_t looked = 0;
  };
  PythonProcess(std::int64_t pid, const Target& target);
  [[nodiscard]] std::int64_t tid_of(const ThreadLook& thread);
  [[nodiscard]] std::int64_t find_tid(const ThreadLook& thread);

  std::int64_t pid_;
  Target target_;
  std::string version_;
  std::unique_ptr<ProcessMemory> memory_;
  std::unique_ptr<SourceFiles> source_;
  std::unique_ptr<StackWalker> walker_;
  ProcessLook look_;
  std::vector<Tid> tids_;
  bool nested_ = false;  // its pid namespace is not ours: its numbers have to be translated
  std::size_t samples_ = 0;
};

}  // namespace headroom::python
