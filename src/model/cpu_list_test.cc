// SPDX-License-Identifier: Apache-2.0
#include "model/cpu_list.h"

#include <gmock/gmock.h>

namespace headroom {
namespace {

TEST(CpuList, IsReadAndWrittenAsTheKernelDoes) {
  for (const char* list : {"0", "3", "0-3", "0-3,8", "1,3,5-6"}) {
    const auto cpus = cpus_of(list);
    ASSERT_TRUE(cpus) << list;
    EXPECT_EQ(to_list(*cpus), list);
  }
  EXPECT_EQ(count(cpus_of("0-3,8\n").value()), 5);
  EXPECT_EQ(to_list(cpus_of("2,0-1,1-2").value()), "0-2") << "each core once";
}

TEST(CpuList, WhatIsNoneIsNothing) {
  for (const char* text : {"", "\n", "x", "3-1", "1-", "-1", "0,,1", "0-99999999"}) EXPECT_FALSE(cpus_of(text)) << text;
}

TEST(CpuList, ThoseOfSeveralAreThoseOfAny) {
  CpuSet cpus;
  add(cpus, cpus_of("0").value());
  add(cpus, cpus_of("4-5").value());
  EXPECT_EQ(to_list(cpus), "0,4-5");
}

}  // namespace
}  // namespace headroom
