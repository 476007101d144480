// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace headroom {

// Numbers in a row of which there may be tens of millions, each in as few bits as its neighbours need: instants a
// second apart by whole milliseconds take 19, percents 14. Blocks of kBlock numbers are held as their least one and the
// multiples of a common factor above it (frame of reference: Lemire and Boytsov, "Decoding billions of integers per
// second through vectorization", 2015). One block lies open: to append and to change numbers in order is as cheap as in
// a vector, to change them here and there is not.
class PackedNumbers {
 public:
  static constexpr std::size_t kBlock = 1024;

  class const_iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = std::int64_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::int64_t*;
    using reference = std::int64_t;

    const_iterator() = default;
    const_iterator(const PackedNumbers& of, std::size_t at) : of_(&of), at_(at) {}
    reference operator*() const { return (*of_)[at_]; }
    reference operator[](difference_type n) const { return *(*this + n); }
    const_iterator& operator+=(difference_type n) { return at_ += static_cast<std::size_t>(n), *this; }
    const_iterator& operator-=(difference_type n) { return *this += -n; }
    const_iterator& operator++() { return *this += 1; }
    const_iterator& operator--() { return *this += -1; }
    const_iterator operator++(int) { return ++*this, *this - 1; }
    const_iterator operator--(int) { return --*this, *this + 1; }
    friend const_iterator operator+(const_iterator it, difference_type n) { return it += n; }
    friend const_iterator operator+(difference_type n, const_iterator it) { return it += n; }
    friend const_iterator operator-(const_iterator it, difference_type n) { return it -= n; }
    friend difference_type operator-(const_iterator a, const_iterator b) {
      return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
    }
    bool operator==(const const_iterator& other) const { return at_ == other.at_; }
    auto operator<=>(const const_iterator& other) const { return at_ <=> other.at_; }

   private:
    const PackedNumbers* of_ = nullptr;
    std::size_t at_ = 0;
  };

  void push_back(std::int64_t value) {
    if (size_ / kBlock != open_) open(size_ / kBlock);
    loose_.push_back(value);
    ++size_;
  }
  // As long as `size`; `value` for what is new.
  void resize(std::size_t size, std::int64_t value);
  void set(std::size_t at, std::int64_t value) {
    if (at / kBlock != open_) open(at / kBlock);
    loose_[at % kBlock] = value;
  }
  // Each number by what `changed` makes of it.
  template <class Changed>
  void change_all(const Changed& changed) {
    for (std::size_t i = 0; i < size_; ++i) set(i, changed((*this)[i]));
  }
  void clear() { *this = PackedNumbers(); }

  // Reads in order as fast as from a vector, a block at a time; the one before may be asked for again.
  class InOrder {
   public:
    explicit InOrder(const PackedNumbers& of) : of_(&of) {}
    std::int64_t operator[](std::size_t at) {
      const std::size_t block = at / kBlock;
      if (block + 1 == block_) return (*of_)[at];
      if (block != block_) take(block);
      return numbers_[at % kBlock];
    }
    [[nodiscard]] std::size_t size() const { return of_->size(); }

   private:
    void take(std::size_t block);

    const PackedNumbers* of_;
    std::size_t block_ = SIZE_MAX - 1;
    std::vector<std::int64_t> numbers_;
  };
  [[nodiscard]] InOrder in_order() const { return InOrder(*this); }

  [[nodiscard]] std::int64_t operator[](std::size_t at) const {
    const std::size_t block = at / kBlock;
    return block == open_ ? loose_[at % kBlock] : blocks_[block].number(at % kBlock);
  }
  [[nodiscard]] std::int64_t front() const { return (*this)[0]; }
  [[nodiscard]] std::int64_t back() const { return (*this)[size_ - 1]; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const_iterator begin() const { return {*this, 0}; }
  [[nodiscard]] const_iterator end() const { return {*this, size_}; }
  [[nodiscard]] std::size_t bytes() const;  // of memory

 private:
  struct Block {
    std::uint64_t least = 0, factor = 1;  // sums wrap, as those of int64_t do
    unsigned width = 0;                   // bits of a field
    std::vector<std::uint64_t> words;     // of fields, one behind the other; one word more than they need

    [[nodiscard]] std::int64_t number(std::size_t at) const {
      if (width == 0) return static_cast<std::int64_t>(least);
      const std::size_t bit = at * width, word = bit / 64, shift = bit % 64;
      std::uint64_t field = words[word] >> shift;
      if (shift > 0) field |= words[word + 1] << (64 - shift);
      if (width < 64) field &= (std::uint64_t{1} << width) - 1;
      return static_cast<std::int64_t>(least + field * factor);
    }
  };
  static Block packed(const std::vector<std::int64_t>& numbers);
  // Of a block that is not the open one.
  static void unpack(const Block& block, std::size_t count, std::vector<std::int64_t>& numbers);
  [[nodiscard]] std::size_t length_of(std::size_t block) const { return std::min(kBlock, size_ - block * kBlock); }
  void open(std::size_t block);

  std::vector<Block> blocks_;        // that of the open one is out of date
  std::size_t open_ = 0;             // which of them
  std::vector<std::int64_t> loose_;  // its numbers
  std::size_t size_ = 0;
};

// As median() of base/median.h, without a copy of them: by 16 bits at a time, the highest first.
[[nodiscard]] std::int64_t median(const PackedNumbers& numbers);

}  // namespace headroom
