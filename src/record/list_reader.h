// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/sqlite.h"
#include "model/dictionary.h"
#include "model/losses.h"
#include "model/recording.h"
#include "record/lists.h"

namespace headroom {

// Reads the texts, lists and list rows of a file into a recording whose sources are there, and what came since when it
// is asked again. Each part is its own call, so that a damaged page costs what lies behind it.
class ListReader {
 public:
  struct Hooks {
    std::function<Result<void>(std::uint64_t values)> charge;  // fails when there are too many
    std::function<void(LossKind, std::string, std::optional<LossPlace>, std::int64_t count)> lose;
    std::function<SourceId(std::int64_t)> source;  // of a number in the file; kNoSource: its rows are left out
  };
  ListReader(Recording& recording, Hooks hooks) : recording_(recording), hooks_(std::move(hooks)) {}

  [[nodiscard]] Result<void> read_texts(Database& database);
  [[nodiscard]] Result<void> read_lists(Database& database);
  [[nodiscard]] Result<void> read_list_rows(Database& database);

 private:
  void keep_list(std::uint64_t number, ListId id);
  using Run = std::pair<const std::uint64_t, std::vector<ListId>>;
  [[nodiscard]] const Run* run_of(std::uint64_t number) const;  // null: there is no such list
  [[nodiscard]] Result<void> expect_rows(Database& database);
  void append_list_rows(const LossPlace& place);

  Recording& recording_;
  Hooks hooks_;
  Dictionary dictionary_;
  std::unordered_map<std::int64_t, TextId> texts_;  // by the file's numbers
  // Likewise, those that follow one another under the first one's number: one entry where none is missing.
  std::map<std::uint64_t, std::vector<ListId>> lists_;
  std::map<std::int64_t, std::size_t> expected_;  // rows, by the file's numbers of sources
  std::vector<StoredListRow> rows_;               // kept from blob to blob
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_text_ = kNone, last_list_ = kNone, last_rows_ = kNone;  // ids of what was read
};

}  // namespace headroom
