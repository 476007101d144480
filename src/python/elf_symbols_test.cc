// SPDX-License-Identifier: Apache-2.0
#include "python/elf_symbols.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fd.h"
#include "base/testing.h"
#include "python/attach.h"

namespace headroom::python {
namespace {

using testing::ElementsAre;

ReadAt bytes(const std::string& file) {
  return [&file](std::uint64_t offset, std::span<std::byte> into) {
    if (offset > file.size() || file.size() - offset < into.size()) return false;
    std::memcpy(into.data(), file.data() + offset, into.size());
    return true;
  };
}

std::string corpus(const char* name) {
  return read_file(in_checkout(std::string("tests/fuzz/python_elf_fuzz/") + name)).value();
}

// This process's C library: what the dynamic linker says is the truth.
TEST(ElfSymbols, AgreeWithTheDynamicLinker) {
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::getpid), &info), 0);
  const auto file = read_file(info.dli_fname);
  ASSERT_TRUE(file);
  constexpr std::array<std::string_view, 3> kNames{"environ", "of_nobody", "stdout"};
  const auto elf = find_symbols(bytes(*file), kNames);
  ASSERT_TRUE(elf) << elf.error().what;
  const auto base = reinterpret_cast<std::uint64_t>(info.dli_fbase);
  EXPECT_EQ(load_bias(*elf, 0, base), base);
  ASSERT_TRUE(elf->values[0] && elf->values[2]);
  EXPECT_EQ(base + *elf->values[2], reinterpret_cast<std::uint64_t>(::dlsym(RTLD_DEFAULT, "stdout")));
  EXPECT_FALSE(elf->values[1]);
}

TEST(ElfSymbols, BothKindsOfHashTablesAreUsed) {
  constexpr std::array<std::string_view, 3> kNames{"_PyRuntime", "PyCode_Type", "malloc"};
  for (const char* name : {"gnu_hash.so", "sysv_hash.so"}) {
    const auto elf = find_symbols(bytes(corpus(name)), kNames);
    ASSERT_TRUE(elf) << name;
    EXPECT_TRUE(elf->values[0]) << name;
    EXPECT_TRUE(elf->values[1]) << name;
    EXPECT_NE(elf->values[0], elf->values[1]);
    EXPECT_FALSE(elf->values[2]) << "undefined there";
  }
}

TEST(ElfSymbols, ACutFileIsDeclinedOrLacksSymbols) {
  const std::string whole = corpus("gnu_hash.so");
  constexpr std::array<std::string_view, 1> kNames{"_PyRuntime"};
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 64) {
    const std::string cut = whole.substr(0, size);
    const auto elf = find_symbols(bytes(cut), kNames);
    EXPECT_TRUE(elf || elf.error().code == Errc::kInvalidInput);
  }
  EXPECT_FALSE(find_symbols(bytes("#!/usr/bin/python3\n"), kNames));
}

TEST(Maps, FilesComeOnceWithWhereTheyBegin) {
  const auto files = mapped_files(
      "55d0c0000000-55d0c0100000 r--p 00000000 08:01 123 /usr/bin/python3.11\n"
      "55d0c0100000-55d0c0400000 r-xp 00100000 08:01 123                        /usr/bin/python3.11\n"
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
      "nonsense\n"
      "7f0000002000-7f0000003000 r--p 00002000 08:01 9 /home/a b/libpython3.12.so.1.0 (deleted)\n"
      "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0 [vdso]");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, "/usr/bin/python3.11");
  EXPECT_EQ(files[0].begin, 0x55d0c0000000U);
  EXPECT_TRUE(files[0].executable);
  EXPECT_EQ(files[1].path, "/home/a b/libpython3.12.so.1.0 (deleted)");
  EXPECT_EQ(files[1].offset, 0x2000U);
  EXPECT_FALSE(files[1].executable);
}

TEST(Maps, VersionsAreInNames) {
  std::vector<int> minors;
  for (const char* name : {"/usr/bin/python3.11", "/x/libpython3.8.so.1.0", "/x/_heapq.cpython-310-x86_64-linux-gnu.so",
                           "/x/libpython2.7.so", "/usr/bin/python3", "/usr/bin/python", "/lib/libc.so.6"})
    minors.push_back(minor_in_name(name));
  EXPECT_THAT(minors, ElementsAre(11, 8, 10, 0, -1, -1, -1));
}

}  // namespace
}  // namespace headroom::python
