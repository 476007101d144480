// SPDX-License-Identifier: Apache-2.0
#include "model/native_words.h"

#include <gmock/gmock.h>

#include "model/catalogue.h"

namespace headroom {
namespace {

TEST(NativeWords, NameNothingThatIsPythonsOrPyTorchs) {
  for (const Fix& fix : all_fixes())
    for (const std::string_view text : {fix.title, fix.apply, fix.verify, fix.undo, fix.why_safe}) {
      if (fix.id == "start_loader_workers" || fix.id == "more_loader_workers" || fix.id == "more_requests")
        if (text == fix.apply) continue;  // a plan says how many (plan/shape.cc)
      const std::string native = native_words(std::string(text));
      for (const char* word : {"DataLoader", "torch", "Torch", "Python", "python", "num_workers", "import ", "imports",
                               ".item()", "collate_fn", "autocast", "pin_memory", "prefetch_factor", "no_sync"})
        EXPECT_EQ(native.find(word), std::string::npos) << fix.id << ": " << native;
    }
}

TEST(NativeWords, LeaveWhatEachProgramHasAsItIs) {
  const std::string text = "write checkpoints from a thread or less often, first to local disk";
  EXPECT_EQ(native_words(text), text);
}

}  // namespace
}  // namespace headroom
