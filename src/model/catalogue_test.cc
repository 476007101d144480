// SPDX-License-Identifier: Apache-2.0
#include "model/catalogue.h"

#include <gtest/gtest.h>

#include <set>

namespace headroom {
namespace {

TEST(Catalogue, EveryRowSaysWhatItRestsOnAndWhatWouldOverturnIt) {
  std::set<std::string_view> ids;
  for (const CauseInfo& row : all_causes()) {
    SCOPED_TRACE(row.id);
    EXPECT_TRUE(ids.insert(row.id).second);
    for (const std::string_view text : {row.words, row.signature, row.look_alikes, row.overturn}) EXPECT_NE(text, "");
    EXPECT_FALSE(row.needs.empty()) << "a rule names it";
    for (const std::string_view text : {row.signature, row.look_alikes, row.overturn, row.beyond, row.observe.words,
                                        row.observe.how.python, row.observe.how.native})
      EXPECT_FALSE(text.ends_with('.')) << text;
  }
}

TEST(Catalogue, ARootCauseHasAFixAndAFixSaysAll) {
  std::set<std::string_view> ids;
  for (const CauseInfo& row : all_causes())
    if (!row.number.empty()) {
      EXPECT_FALSE(fixes_of(row.cause).empty()) << row.id;
    }
  for (const Fix& fix : all_fixes()) {
    SCOPED_TRACE(fix.id);
    EXPECT_TRUE(ids.insert(fix.id).second);
    EXPECT_NE(fix.why_safe, "");
    for (const Wording& text : {fix.title, fix.apply, fix.verify, fix.undo})
      for (const std::string_view one : {text.python, text.native}) {
        EXPECT_NE(one, "");
        EXPECT_FALSE(one.ends_with('.')) << one;
      }
  }
}

TEST(Catalogue, AProgramWithoutPythonIsToldNothingThatIsPythonsOrPyTorchs) {
  for (const Fix& fix : all_fixes())
    for (const std::string_view text :
         {fix.title.native, fix.apply.native, fix.verify.native, fix.undo.native, fix.why_safe})
      for (const char* word : {"DataLoader", "torch", "Torch", "Python", "python", "num_workers", "import ", "imports",
                               ".item()", "collate_fn", "autocast", "pin_memory", "prefetch_factor", "no_sync"})
        EXPECT_EQ(text.find(word), std::string::npos) << fix.id << ": " << text;
}

TEST(Catalogue, FixesAreFoundByTheirCause) {
  std::size_t found = 0;
  for (const CauseInfo& row : all_causes())
    for (const Fix& fix : fixes_of(row.cause)) {
      EXPECT_EQ(fix.cause, row.cause);
      ++found;
    }
  EXPECT_EQ(found, all_fixes().size());
}

}  // namespace
}  // namespace headroom
