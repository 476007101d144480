// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "device/nvml_fake.h"
#include "device/nvml_reader.h"

namespace headroom {
namespace {

std::string old_driver() { return in_build("src/device/libold_driver_fake.so"); }

using testing::HasSubstr;

TEST(NvmlApi, MissingLibrarySaysWhatToDo) {
  const auto api = NvmlApi::load("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, Errc::kNotFound);
  EXPECT_THAT(api.error().what, HasSubstr("/nonexistent/libnvidia-ml.so.1"));
  EXPECT_THAT(api.error().hint, HasSubstr("headroom doctor"));
}

TEST(NvmlApi, AnotherLibraryIsRefused) {
  const auto api = NvmlApi::load("libm.so.6");
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, Errc::kUnsupported);
}

TEST(NvmlApi, OldDriverLoadsWithoutOptionalCounters) {
  const auto api = NvmlApi::load(old_driver());
  ASSERT_TRUE(api) << api.error().what;
  EXPECT_EQ(api->energy, nullptr);
  EXPECT_EQ(api->field_values, nullptr);
  EXPECT_NE(api->init, nullptr) << "the unversioned name counts";
}

TEST(NvmlApi, OldDriverIsReadAndWhatItLacksIsNotSupported) {
  NvmlReaderOptions options;
  options.path = old_driver();
  auto reader = NvmlReader::open(options);
  ASSERT_TRUE(reader) << reader.error().what;
  MemorySink sink;
  (*reader)->read(kSecond, sink);
  const Recording recording = sink.take();
  const auto gpu = recording.find(SourceKind::kGpu, "GPU-01d00000-0000-0000-0000-000000000000");
  ASSERT_TRUE(gpu);
  const Track& track = recording.tracks[static_cast<std::size_t>(*gpu)];
  ASSERT_NE(track.find(Metric::kGpuUtil), nullptr);
  EXPECT_EQ(track.find(Metric::kGpuUtil)->at(0), 700);
  for (const auto metric : {Metric::kEnergy, Metric::kPower, Metric::kMemoryUsed, Metric::kSmActive, Metric::kPcieTx}) {
    ASSERT_NE(track.find(metric), nullptr) << info(metric).name;
    EXPECT_EQ(track.find(metric)->at(0), Reading<std::int64_t>(tl::unexpected(Absent::kNotSupported)))
        << info(metric).name;
  }
  const auto process = recording.find(SourceKind::kGpuProcess, "GPU-01d00000-0000-0000-0000-000000000000/4242/0");
  ASSERT_TRUE(process) << "the first version of the list has rows of 16 bytes";
  EXPECT_EQ(recording.tracks[static_cast<std::size_t>(*process)].find(Metric::kProcessGpuMemory)->at(0), 1048576);
}

TEST(NvmlSession, InitErrorsNameTheCodeAndTheNextStep) {
  FakeNvml nvml({FakeGpu{}});
  nvml.init_code = nvml::kLibRmVersionMismatch;
  const auto session = NvmlSession::open(nvml.api());
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().what, HasSubstr("NVML_ERROR_LIB_RM_VERSION_MISMATCH"));
  EXPECT_THAT(session.error().hint, HasSubstr("reboot"));
  nvml.init_code = nvml::kNoPermission;
  EXPECT_EQ(NvmlSession::open(nvml.api()).error().code, Errc::kNoPermission);
}

TEST(NvmlSession, ShutsDownWhenDropped) {
  FakeNvml nvml({FakeGpu{}});
  {
    const auto session = NvmlSession::open(nvml.api());
    ASSERT_TRUE(session);
    EXPECT_TRUE(nvml.open);
  }
  EXPECT_FALSE(nvml.open);
}

TEST(NvmlErrors, MapToTheReasonForAbsence) {
  EXPECT_EQ(absent_for(nvml::kNotSupported), Absent::kNotSupported);
  EXPECT_EQ(absent_for(nvml::kNoPermission), Absent::kNoPermission);
  EXPECT_EQ(absent_for(nvml::kNotFound), Absent::kNoData);
  EXPECT_EQ(absent_for(nvml::kGpuIsLost), Absent::kDeviceLost);
  EXPECT_EQ(absent_for(nvml::kUnknown), Absent::kError);
  EXPECT_EQ(absent_for(4711), Absent::kError);
  EXPECT_EQ(nvml_error_name(4711), "NVML error 4711");
}

TEST(DriverVersion, KnownBadRangeIsRecognised) {
  for (const char* bad : {"535.43.02", "535.54.03", "535.86.10"}) EXPECT_TRUE(scrambles_process_list(bad)) << bad;
  for (const char* good : {"535.98", "535.104.05", "530.30.02", "535.42", "550.54.15", "", "unknown"}) {
    EXPECT_FALSE(scrambles_process_list(good)) << good;
  }
}

}  // namespace
}  // namespace headroom
