// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sqlite.h"
#include "model/dictionary.h"
#include "model/losses.h"
#include "model/recording.h"

namespace headroom {

// Texts, lists and list rows that came since the last flush. Ids are numbered on: the first new one is given.
struct NewLists {
  std::size_t first_text = 0, first_list = 0;
  std::vector<std::string> texts;
  std::vector<TextId> ids;        // of the lists, one after another
  std::vector<std::size_t> ends;  // in `ids`, by list
  std::vector<std::pair<SourceId, ListRow>> rows;
  std::size_t bytes = 0;  // that all this takes in memory, about

  [[nodiscard]] bool empty() const { return texts.empty() && ends.empty() && rows.empty(); }
};

// Both bodies begin with a checksum of the rest.
//   lists: per list varints: how many ids it has in common with the beginning of the list before, how many follow,
//   these rows: unit of time (varint, 1 or 1000 ns); time of the first (signed varint), then per row the change of the
//   step in units (signed varint; the first step is 0), the list (varint, times 2, plus 1 if a value follows), a signed
//   varint
// Holds its buffers between calls.
class ListEncoder {
 public:
  [[nodiscard]] std::string_view lists(const NewLists& lists);
  // Calls put(source, rows, body) for every source that has rows.
  template <class Put>
  [[nodiscard]] Result<void> rows(const NewLists& lists, const Put& put) {
    sorted_.assign(lists.rows.begin(), lists.rows.end());
    std::stable_sort(sorted_.begin(), sorted_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
      const SourceId source = sorted_[begin].first;
      rows_.clear();
      for (end = begin; end < sorted_.size() && sorted_[end].first == source; ++end)
        rows_.push_back(sorted_[end].second);
      encode_rows();
      HR_TRYV(put(source, std::span<const ListRow>(rows_), std::string_view(body_)));
    }
    return {};
  }

 private:
  void encode_rows();
  void add_checksum();

  std::vector<std::pair<SourceId, ListRow>> sorted_;
  std::vector<ListRow> rows_;
  std::string body_;
};

// Nothing if malformed; `count` is what the file says, and is not believed.
[[nodiscard]] std::optional<std::vector<std::vector<std::uint64_t>>> decode_lists(std::string_view body,
                                                                                  std::uint64_t count);
struct StoredListRow {
  Nanos at = 0;
  std::uint64_t list = 0;
  std::int32_t value = 0;
};
// Into `rows`, whose memory is kept from call to call. False if malformed: what they hold is then undefined.
[[nodiscard]] bool decode_list_rows(std::string_view body, std::uint64_t count, std::vector<StoredListRow>& rows);

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
