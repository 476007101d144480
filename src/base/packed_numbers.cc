// SPDX-License-Identifier: Apache-2.0
#include "base/packed_numbers.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/median.h"

namespace headroom {

namespace {

constexpr std::uint64_t kFivesOfMillion = 15'625;

// Divides `distances` from the least one by what is common to them, and returns that: the powers of two, of which
// `bits` has no less than each of them, and where whole milliseconds in nanoseconds or their like are, the powers of
// five. (Two divisions by constants are cheaper than one by a factor that is not known here.)
std::uint64_t divide_by_common_factor(std::vector<std::uint64_t>& distances, std::uint64_t bits) {
  constexpr int kTwosOfMillion = 6;
  const int twos = std::countr_zero(bits);
  for (std::uint64_t& distance : distances) distance >>= twos;
  const std::uint64_t factor = std::uint64_t{1} << twos;
  const bool fives =
      twos >= kTwosOfMillion && std::all_of(distances.begin(), distances.end(),
                                            [](std::uint64_t distance) { return distance % kFivesOfMillion == 0; });
  if (!fives) return factor;
  for (std::uint64_t& distance : distances) distance /= kFivesOfMillion;
  return factor * kFivesOfMillion;
}

}  // namespace

PackedNumbers::Block PackedNumbers::packed(const std::vector<std::int64_t>& numbers) {
  Block block;
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  block.least = static_cast<std::uint64_t>(*least);
  const std::uint64_t span = static_cast<std::uint64_t>(*most) - block.least;
  if (span == 0) return block;
  std::vector<std::uint64_t> fields;
  fields.reserve(numbers.size());
  std::uint64_t bits = 0;
  for (const std::int64_t number : numbers)
    bits |= fields.emplace_back(static_cast<std::uint64_t>(number) - block.least);
  block.factor = divide_by_common_factor(fields, bits);
  block.width = static_cast<unsigned>(std::bit_width(span / block.factor));
  block.words.assign(numbers.size() * block.width / 64 + 2, 0);
  std::size_t bit = 0;
  for (const std::uint64_t field : fields) {
    const std::size_t word = bit / 64, shift = bit % 64;
    block.words[word] |= field << shift;
    if (shift > 0) block.words[word + 1] |= field >> (64 - shift);
    bit += block.width;
  }
  return block;
}

void PackedNumbers::open(std::size_t block) {
  if (blocks_.size() <= std::max(open_, block)) blocks_.resize(std::max(open_, block) + 1);
  blocks_[open_] = packed(loose_);
  unpack(blocks_[block], length_of(block), loose_);
  open_ = block;
}

void PackedNumbers::unpack(const Block& block, std::size_t count, std::vector<std::int64_t>& numbers) {
  numbers.assign(count, static_cast<std::int64_t>(block.least));
  if (block.width == 0) return;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - block.width);
  std::size_t bit = 0;
  for (std::int64_t& number : numbers) {  // as Block::number(), without a branch
    const std::size_t word = bit / 64, shift = bit % 64;
    const std::uint64_t field = block.words[word] >> shift | (block.words[word + 1] << 1) << (63 - shift);
    number = static_cast<std::int64_t>(block.least + (field & mask) * block.factor);
    bit += block.width;
  }
}

void PackedNumbers::InOrder::take(std::size_t block) {
  block_ = block;
  if (block == of_->open_)
    numbers_ = of_->loose_;
  else
    unpack(of_->blocks_[block], of_->length_of(block), numbers_);
}

void PackedNumbers::resize(std::size_t size, std::int64_t value) {
  while (size_ < size) push_back(value);
  if (size_ == size) return;
  if (size == 0) return clear();
  open((size - 1) / kBlock);
  blocks_.resize(open_ + 1);
  loose_.resize(size - open_ * kBlock);
  size_ = size;
}

std::size_t PackedNumbers::bytes() const {
  std::size_t sum = blocks_.capacity() * sizeof(Block) + loose_.capacity() * sizeof(std::int64_t);
  for (const Block& block : blocks_) sum += block.words.capacity() * sizeof(std::uint64_t);
  return sum;
}

std::int64_t median(const PackedNumbers& numbers) {
  constexpr std::size_t kFew = std::size_t{1} << 20;  // of which a copy is small
  if (numbers.size() <= kFew) {
    std::vector<std::int64_t> all;
    all.reserve(numbers.size());
    for (PackedNumbers::InOrder each = numbers.in_order(); all.size() < each.size();) all.push_back(each[all.size()]);
    return median(std::move(all));
  }
  constexpr unsigned kBits = 16;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;  // turned, numbers are in order as those without a sign
  std::uint64_t found = 0;                                 // the bits from `shift` on
  std::size_t left = numbers.size() / 2;                   // of those with these bits so many are less
  for (unsigned shift = 64; shift > 0;) {
    std::vector<std::size_t> counts(std::size_t{1} << kBits);
    PackedNumbers::InOrder each = numbers.in_order();
    for (std::size_t i = 0; i < each.size(); ++i) {
      const std::uint64_t bits = static_cast<std::uint64_t>(each[i]) ^ kSign;
      if (shift == 64 || bits >> shift == found) ++counts[(bits >> (shift - kBits)) % counts.size()];
    }
    std::size_t part = 0;
    while (left >= counts[part]) left -= counts[part++];
    found = found << kBits | part;
    shift -= kBits;
  }
  return static_cast<std::int64_t>(found ^ kSign);
}

}  // namespace headroom
