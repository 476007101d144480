// SPDX-License-Identifier: Apache-2.0
#include "python/attach.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "python/process.h"
#include "python/testing.h"

namespace headroom::python {

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(MappedFiles, TensOfThousandsAreListedOnceEach) {
  std::string maps;
  for (int i = 0; i < 60'000; ++i)
    for (const char* rights : {"r--p", "r-xp"})
      maps += fmt::format("7f0000000000-7f0000001000 {} 00000000 00:01 7 /memfd:{}\n", rights, i);
  const auto files = mapped_files(maps);
  ASSERT_EQ(files.size(), 60'000U);
  EXPECT_EQ(files.back().path, "/memfd:59999");
  EXPECT_TRUE(files.back().executable);
}

// A process that has mapped a file "python3evil" and put something else where the list of its mappings says it is.
class WhatIsMapped : public ::testing::TestWithParam<const char*> {
 protected:
  WhatIsMapped() {
    std::string folder = (fs::temp_directory_path() / "headroom-maps-XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
    const std::string file = folder_ + "/python3evil";
    std::ofstream(file) << std::string(4096, 'x');
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    child_ = ::fork();
    if (child_ == 0) {
      const int fd = ::open(file.c_str(), O_RDONLY);
      if (::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) ::_exit(1);
      ::unlink(file.c_str());
      const std::string there = file + " (deleted)";
      if (std::string_view(GetParam()) == "pipe")
        ::mkfifo(there.c_str(), S_IRUSR | S_IWUSR);
      else
        (void)!::symlink("/dev/zero", there.c_str());
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    const Fd end(ready[0]);
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(end.get(), &byte, 1), 1) << "the file could not be mapped";
  }
  ~WhatIsMapped() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    fs::remove_all(folder_);
  }

  std::string folder_;
  pid_t child_ = -1;
};

TEST_P(WhatIsMapped, IsNotOpenedUnlessItIsAFile) {
  EXPECT_FALSE(PythonProcess::attach(child_));  // and not waited for
}

INSTANTIATE_TEST_SUITE_P(Kinds, WhatIsMapped, ::testing::Values("pipe", "link"));

std::string machine_with_scope(const char* scope) {
  const std::string root = testing::TempDir() + "headroom-yama-" + std::to_string(::getpid()) + scope;
  std::filesystem::create_directories(root + "/proc/sys/kernel/yama");
  std::ofstream(root + "/proc/sys/kernel/yama/ptrace_scope") << scope << "\n";
  return root;
}

TEST(Access, WhatYamaForbidsIsSaidWithTheWayOut) {
  EXPECT_EQ(ptrace_scope("/nonexistent"), std::nullopt);
  const std::string root = machine_with_scope("1");
  EXPECT_EQ(ptrace_scope(root), 1);
  const Error error = denied(::getpid(), root);
  EXPECT_EQ(error.code, Errc::kNoPermission);
  EXPECT_THAT(error.what, HasSubstr("ptrace_scope is 1"));
  EXPECT_THAT(error.hint, HasSubstr("headroom run"));
  EXPECT_THAT(denied(::getpid(), machine_with_scope("2")).what, HasSubstr("ptrace_scope is 2"));
  EXPECT_THAT(denied(::getpid(), machine_with_scope("3")).what, HasSubstr("ptrace_scope is 3"));
}

TEST(Access, WhatIsSaidOfOwnChildrenIsTrue) {
  Program program("/usr/bin/python3", "import time\nprint(1, flush=True)\ntime.sleep(1000)");
  ASSERT_EQ(program.line(), "1");
  const auto process = PythonProcess::attach(program.pid());
  const auto can = can_read_stacks(Whose::kOwn);
  EXPECT_EQ(can.has_value(), process.has_value()) << (can ? process.error().what : can.error().what);
}

}  // namespace

}  // namespace headroom::python
