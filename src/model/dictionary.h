// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/recording.h"

namespace headroom {

// Texts, and lists of them, each kept once and numbered in order of appearance. Asking for what is known allocates
// nothing. Bounded: what comes after kMostTexts or kMostTextBytes, kMostLists or kMostListIds gets no number.
class Dictionary {
 public:
  static constexpr std::size_t kMostTexts = std::size_t{1} << 18, kMostLists = std::size_t{1} << 18,
                               kMostListIds = std::size_t{1} << 23, kMostTextBytes = std::size_t{64} << 20;

  [[nodiscard]] TextId text(std::string_view text);
  // kNoList also if one of the ids is no text's.
  [[nodiscard]] ListId list(std::span<const TextId> ids);

  [[nodiscard]] std::size_t texts() const { return texts_.size(); }
  [[nodiscard]] std::size_t text_bytes() const { return text_bytes_; }
  [[nodiscard]] std::size_t lists() const { return ends_.size(); }
  [[nodiscard]] const std::string& text_of(TextId id) const { return texts_[id]; }
  [[nodiscard]] std::span<const TextId> list_of(ListId id) const;

 private:
  std::deque<std::string> texts_;  // where the keys of text_ids_ lie
  std::unordered_map<std::string_view, TextId> text_ids_;
  std::size_t text_bytes_ = 0;
  std::vector<TextId> ids_;                           // of all lists, one after another
  std::vector<std::size_t> ends_;                     // by list
  std::vector<ListId> same_hash_;                     // by list: the one before with its hash
  std::unordered_map<std::uint64_t, ListId> newest_;  // by hash
};

}  // namespace headroom
