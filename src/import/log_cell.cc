// SPDX-License-Identifier: Apache-2.0
// One cell of a log: a number with or without its unit, a word for its absence, or nonsense.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/strings.h"
#include "import/log_column.h"
#include "import/log_date.h"

namespace headroom {

namespace {

CellValue absent_cell(Absent reason, bool unreadable = false) {
  return {0, static_cast<std::uint8_t>(reason), unreadable};
}

// "11 264", "11'264", with blanks of any kind, and "73.8 %" with one without a break: without them; nothing where there
// are none.
std::optional<std::string> without_groups(std::string_view text) {
  const auto group = [&](std::size_t at) {  // three digits and no more
    for (std::size_t i = at; i < at + 3; ++i)
      if (i >= text.size() || !is_digit(text[i])) return false;
    return at + 3 == text.size() || !is_digit(text[at + 3]);
  };
  std::string plain;
  bool changed = false;
  for (std::size_t i = 0; i < text.size();) {
    const bool between = text[i] == ' ' || text[i] == '\'';
    const std::size_t blank = between ? 1 : no_break_blank(text.substr(i));
    std::size_t before = 0;  // digits
    while (blank > 0 && before < i && is_digit(text[i - before - 1])) ++before;
    const bool grouped = before > 0 && before <= 3 && group(i + blank);
    if (blank == 0 || (between && !grouped)) {
      plain += text[i++];
      continue;
    }
    if (!grouped) plain += ' ';
    i += blank;
    changed = true;
  }
  return changed ? std::optional(plain) : std::nullopt;
}

// Numbers that the short way cannot take: exponents, more digits than 64 bits hold.
CellValue read_double(std::string_view text, const ColumnRule& rule) {
  const auto number = parse_number<double>(text);
  if (!number) return absent_cell(Absent::kGarbage, true);
  const double stored = *number * static_cast<double>(rule.multiplier);
  if (!(stored >= static_cast<double>(rule.low) && stored <= static_cast<double>(rule.high)))
    return absent_cell(Absent::kGarbage);
  return {static_cast<std::int64_t>(stored < 0 ? stored - 0.5 : stored + 0.5), 0, false};
}

CellValue read_special(std::string_view text, ColumnRule& rule) {
  if (const auto reason = absence_of(text)) return absent_cell(*reason);
  if (rule.metric == Metric::kEventReasons && text.starts_with("0x")) {
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (error != std::errc{} || end != text.data() + text.size()) return absent_cell(Absent::kGarbage, true);
    if (bits > static_cast<std::uint64_t>(rule.high)) return absent_cell(Absent::kGarbage);
    return {static_cast<std::int64_t>(bits), 0, false};
  }
  if (const auto plain = without_groups(text)) return read_cell(*plain, rule);
  return read_double(text, rule);
}

}  // namespace

std::optional<Absent> absence_of(std::string_view text) {
  struct Word {
    std::string_view text;
    Absent reason;
  };
  static constexpr std::array kWords{
      Word{"N/A", Absent::kNotSupported},
      Word{"Not Supported", Absent::kNotSupported},
      Word{"-", Absent::kNotSupported},
      Word{"Requested functionality has been deprecated", Absent::kNotSupported},
      Word{"Unknown Error", Absent::kError},
      Word{"Unknown", Absent::kError},
      Word{"ERR!", Absent::kError},
      Word{"Error", Absent::kError},
      Word{"GPU is lost", Absent::kDeviceLost},
      Word{"GPU requires reset", Absent::kDeviceLost},
      Word{"Reset Required", Absent::kDeviceLost},
      Word{"Insufficient Permissions", Absent::kNoPermission},
      Word{"Not Found", Absent::kNoData},
      Word{"Timeout", Absent::kNoData},
      Word{"", Absent::kNoData},
      Word{"None", Absent::kNoData},
      Word{"null", Absent::kNoData},
      Word{"nan", Absent::kNoData},
      Word{"NaN", Absent::kNoData},
  };
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  for (const Word& word : kWords)
    if (word.text == text) return word.reason;
  return std::nullopt;
}

CellValue read_cell(std::string_view text, ColumnRule& rule) {
  if (rule.role == ColumnRole::kReasonBit) {
    if (text == "Active") return {rule.reason_bit, 0, false};
    if (text == "Not Active") return {0, 0, false};
    if (const auto reason = absence_of(text)) return absent_cell(*reason);
    return absent_cell(Absent::kGarbage, true);
  }
  if (rule.metric == Metric::kPerformanceState && rule.role == ColumnRole::kMetric && text.size() > 1 && text[0] == 'P')
    text.remove_prefix(1);
  if (rule.metric == Metric::kEventReasons) return read_special(text, rule);
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++i;
  std::int64_t whole = 0, power = 1;
  const std::size_t first = i;
  for (; i < text.size() && is_digit(text[i]) && i - first < 17; ++i) whole = whole * 10 + (text[i] - '0');
  if (i == first) return read_special(text, rule);
  if (i + 1 < text.size() && text[i] == '.')
    for (++i; i < text.size() && is_digit(text[i]) && i - first < 17; ++i, power *= 10)
      whole = whole * 10 + (text[i] - '0');
  std::int64_t multiplier = rule.multiplier;
  if (i < text.size()) {
    const std::string_view unit = trim(text.substr(i));
    if (unit.empty() || unit != rule.cell_unit.data()) {
      const auto known = unit_multiplier(unit, rule);
      if (!known) return read_special(text, rule);
      rule.cell_unit = {};
      unit.copy(rule.cell_unit.data(), rule.cell_unit.size() - 1);
      rule.cell_multiplier = *known * (rule.of_one ? kOfOneScale : 1);
      rule.says_percent = true;
    }
    multiplier = rule.cell_multiplier;
  }
  // No GPU has a TiB, and none in use has less than a MiB in use: without a unit the size of the number tells it.
  constexpr std::int64_t kInBytes = std::int64_t{1} << 20;
  if (rule.any_size && rule.dimension == Dimension::kBytes && multiplier == rule.multiplier &&
      whole / power >= kInBytes)
    multiplier = 1;
  std::int64_t stored = 0;
  if (__builtin_mul_overflow(whole, multiplier, &stored)) return read_double(text.substr(0, i), rule);
  if (power != 1) stored = (stored + power / 2) / power;
  if (negative) stored = -stored;
  if (stored < rule.low || stored > rule.high) return absent_cell(Absent::kGarbage);
  return {stored, 0, false};
}

}  // namespace headroom
