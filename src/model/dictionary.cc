// SPDX-License-Identifier: Apache-2.0
#include "model/dictionary.h"

#include <algorithm>

namespace headroom {

TextId Dictionary::text(std::string_view text) {
  if (const auto known = text_ids_.find(text); known != text_ids_.end()) return known->second;
  if (texts_.size() >= kMostTexts || text.size() > kMostTextBytes - text_bytes_) return kNoText;
  text_bytes_ += text.size();
  const auto id = static_cast<TextId>(texts_.size());
  text_ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

ListId Dictionary::list(std::span<const TextId> ids) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const TextId id : ids) {
    if (id >= texts_.size()) return kNoList;
    hash = (hash ^ id) * 1099511628211U;
  }
  const auto known = newest_.find(hash);
  const ListId newest = known == newest_.end() ? kNoList : known->second;
  for (ListId list = newest; list != kNoList; list = same_hash_[list])
    if (std::ranges::equal(list_of(list), ids)) return list;
  if (ends_.size() >= kMostLists || ids_.size() + ids.size() > kMostListIds) return kNoList;
  const auto id = static_cast<ListId>(ends_.size());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ends_.push_back(ids_.size());
  same_hash_.push_back(newest);
  newest_[hash] = id;
  return id;
}

std::span<const TextId> Dictionary::list_of(ListId id) const {
  const std::size_t begin = id == 0 ? 0 : ends_[id - 1];
  return std::span(ids_).subspan(begin, ends_[id] - begin);
}

}  // namespace headroom
