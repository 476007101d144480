// SPDX-License-Identifier: Apache-2.0
#include "record/list_reader.h"

#include <fmt/format.h>

#include <vector>

#include "record/format.h"

namespace headroom {

Result<void> ListReader::read_texts() {
  HR_TRY(Statement row, database_.prepare("SELECT id, text FROM text ORDER BY id"));
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    HR_TRYV(hooks_.charge(1 + row.bytes(1).size() / sizeof(std::int64_t)));
    const TextId id = dictionary_.text(row.bytes(1));
    if (id == kNoText) continue;
    texts_[row.integer(0)] = id;
    if (id == recording_.texts.size()) recording_.texts.emplace_back(row.bytes(1));
  }
}

// Lists whose texts are not there are left out, and then the rows that name them.
Result<void> ListReader::read_lists() {
  HR_TRY(Statement row, database_.prepare("SELECT id, n, fmt, body FROM list ORDER BY id"));
  std::vector<TextId> ids;
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    const auto lists = row.integer(2) == kFmtLists
                           ? decode_lists(row.bytes(3), static_cast<std::uint64_t>(row.integer(1)))
                           : std::nullopt;
    if (!lists) {
      hooks_.lose(LossKind::kDamagedChunk, fmt::format("lists from number {} on", row.integer(0)), std::nullopt, 1);
      continue;
    }
    for (std::size_t i = 0; i < lists->size(); ++i) {
      HR_TRYV(hooks_.charge(1 + (*lists)[i].size()));
      ids.clear();
      for (const std::uint64_t text : (*lists)[i]) {
        const auto known = texts_.find(static_cast<std::int64_t>(text));
        ids.push_back(known == texts_.end() ? kNoText : known->second);
      }
      const ListId id = dictionary_.list(ids);
      if (id == kNoList) continue;
      lists_[static_cast<std::uint64_t>(row.integer(0)) + i] = id;
      if (id == recording_.lists.size()) recording_.lists.push_back(ids);
    }
  }
}

Result<void> ListReader::read_list_rows() {
  HR_TRY(Statement row, database_.prepare("SELECT source, t0, t1, n, fmt, body FROM list_rows ORDER BY id"));
  for (;;) {
    HR_TRY(const bool more, row.step());
    if (!more) return {};
    const SourceId source = hooks_.source(row.integer(0));
    if (source == kNoSource) continue;
    const LossPlace place{row.integer(1), row.integer(2), source};
    const auto rows = row.integer(4) == kFmtListRows
                          ? decode_list_rows(row.bytes(5), static_cast<std::uint64_t>(row.integer(3)))
                          : std::nullopt;
    if (!rows) {
      hooks_.lose(LossKind::kDamagedChunk, "list rows", place, 1);
      continue;
    }
    HR_TRYV(hooks_.charge(3 * rows->size()));
    append_list_rows(place, *rows);
  }
}

void ListReader::append_list_rows(const LossPlace& place, std::span<const StoredListRow> rows) {
  auto& track = recording_.tracks[static_cast<std::size_t>(place.source)].lists;
  std::int64_t missing = 0;
  for (const StoredListRow& row : rows) {
    const auto list = lists_.find(row.list);
    if (list == lists_.end() || (!track.empty() && row.at < track.back().at))
      ++missing;
    else
      track.push_back({row.at, list->second, row.value});
  }
  if (missing > 0) hooks_.lose(LossKind::kMissingRows, "rows of lists that could not be read", place, missing);
}

}  // namespace headroom
