// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
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

}  // namespace headroom
