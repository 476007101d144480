// SPDX-License-Identifier: Apache-2.0
#include "export/slices.h"

#include <gmock/gmock.h>

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NestedSlices, WhatGoesOnIsOneSliceAndWhatEndsEndsWithAllInIt) {
  MemorySink sink;
  const TextId a = sink.intern("a"), b = sink.intern("b"), c = sink.intern("c");
  const auto list = [&](const std::vector<TextId>& texts) { return sink.intern_list(texts); };
  const std::vector<ListRow> rows{{10, list({a, b}), 0}, {20, list({a, c}), 0}, {30, list({}), 0}, {40, list({b}), 0}};
  const Recording recording = sink.take();
  EXPECT_THAT(nested_slices(recording, rows, 1000, 50), ElementsAre(NestedSlice{10, 30, a}, NestedSlice{10, 20, b},
                                                                    NestedSlice{20, 30, c}, NestedSlice{40, 50, b}));
  EXPECT_THAT(nested_slices(recording, {}, 1000, 50), IsEmpty());
}

TEST(NestedSlices, ARowSpeaksForSoLongAndNoLonger) {
  MemorySink sink;
  const TextId a = sink.intern("a");
  const ListId list = sink.intern_list(std::vector{a});
  const Recording recording = sink.take();
  EXPECT_THAT(nested_slices(recording, {{10, list, 0}, {100, list, 0}, {110, list, 0}}, 20, 0),
              ElementsAre(NestedSlice{10, 30, a}, NestedSlice{100, 110, a}));
}

}  // namespace
}  // namespace headroom
