// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/variant.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/fd.h"
#include "base/testing.h"

namespace headroom::sim {
namespace {

std::string standin() { return in_build("sim/nvml/lib/libnvidia-ml.so.1"); }

class Variant : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "headroom-variant-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/libnvidia-ml.so.1"; }
  std::string folder_;
};

TEST_F(Variant, HiddenSymbolsAreGoneAndTheOthersWork) {
  const std::vector<std::string> symbols{"nvmlDeviceGetMemoryInfo_v2", "nvmlInit_v2"};
  ASSERT_TRUE(write_library_without(standin(), path(), symbols));
  void* const library = ::dlopen(path().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  for (const auto& symbol : symbols) EXPECT_EQ(::dlsym(library, symbol.c_str()), nullptr) << symbol;
  for (const char* symbol : {"nvmlDeviceGetMemoryInfo", "nvmlInit", "nvmlInitWithFlags", "nvmlShutdown"}) {
    EXPECT_NE(::dlsym(library, symbol), nullptr) << symbol;
  }
  // The unversioned name is another symbol than the hidden one, and calls reach it.
  const auto shutdown = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlShutdown"));
  EXPECT_EQ(shutdown(), 1);  // NVML_ERROR_UNINITIALIZED
  ::dlclose(library);
}

TEST_F(Variant, AnUnknownSymbolIsRefused) {
  const std::vector<std::string> symbols{"nvmlDeviceGetMemoryInfo_v9"};
  const auto result = write_library_without(standin(), path(), symbols);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kInvalidInput);
  EXPECT_NE(result.error().what.find("nvmlDeviceGetMemoryInfo_v9"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(Variant, NoLibraryIsRefusedAtAnyLength) {
  const std::vector<std::string> symbols{"nvmlInit_v2"};
  const auto whole = read_file(standin());
  ASSERT_TRUE(whole);
  for (const std::size_t length : {std::size_t{0}, std::size_t{3}, std::size_t{63}, whole->size() / 2}) {
    const auto cut = folder_ + "/cut";
    ASSERT_TRUE(write_file(cut, whole->substr(0, length)));
    EXPECT_FALSE(write_library_without(cut, path(), symbols)) << length;
  }
}

}  // namespace
}  // namespace headroom::sim
