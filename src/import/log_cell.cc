// SPDX-License-Identifier: Apache-2.0
// One cell of a log: a number with or without its unit, a word for its absence, or nonsense.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/strings.h"
#include "import/column_words.h"
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

// "Active", "1", "True", "Yes" and what denies them.
std::optional<bool> flag_of(std::string_view text) {
  if (text == "Not Active") return false;  // as nvidia-smi writes it in nearly all cells
  constexpr std::array<std::string_view, 7> kYes{"active", "1", "1.0", "true", "yes", "on", "t"};
  constexpr std::array<std::string_view, 9> kNo{"not active", "0", "0.0",      "false",     "no",
                                                "off",        "f", "inactive", "not_active"};
  const std::string small = lower(text);
  if (std::find(kYes.begin(), kYes.end(), small) != kYes.end()) return true;
  if (std::find(kNo.begin(), kNo.end(), small) != kNo.end()) return false;
  return std::nullopt;
}

// The bit of "SwPowerCap", "HW Slowdown" and their like; 0: of none that is known.
std::int64_t reason_bit_of(std::string_view words) {
  const auto name = reason_of_clocks(words, true);
  const auto rule = name.empty() ? std::nullopt : csv_column(name);
  return rule && rule->role == ColumnRole::kReasonBit ? rule->reason_bit : 0;
}

// "SwPowerCap|HwSlowdown", "sw_power_cap, hw_slowdown", "None"; nothing where no word of it is a reason.
std::optional<std::int64_t> reasons_in_words(std::string_view text) {
  constexpr std::array<std::string_view, 6> kNone{"none", "no", "not active", "nothing", "no throttling", "[]"};
  if (const std::string small = lower(trim(text)); std::find(kNone.begin(), kNone.end(), small) != kNone.end())
    return 0;
  std::int64_t bits = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("|,;+/&", begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    std::int64_t bit = reason_bit_of(part);
    if (bit == 0)
      for (const std::string_view word : split(part, ' ')) bit |= reason_bit_of(word);
    bits |= bit;
    begin = end + 1;
  }
  return bits == 0 ? std::nullopt : std::optional(bits);
}

// GPU-Z has bits of its own: power, heat, two of voltages, and that there is little to do.
std::int64_t bits_of_perfcap(std::int64_t bits) {
  constexpr std::int64_t kPower = 1, kHeat = 2, kIdle = 16;
  return ((bits & kPower) != 0 ? kReasonSwPowerCap : 0) | ((bits & kHeat) != 0 ? kReasonSwThermal : 0) |
         ((bits & kIdle) != 0 ? kReasonGpuIdle : 0);
}

// A mask of reasons: a number, "0x0000000000000004", the same without "0x", or words.
CellValue read_reasons(std::string_view text, const ColumnRule& rule) {
  if (const auto reason = absence_of(text); reason && lower(text) != "none") return absent_cell(*reason);
  constexpr std::size_t kDigits = 16;  // of a mask as nvidia-smi writes it
  const bool marked = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = text.substr(marked ? 2 : 0);
  const bool hex = marked || (digits.size() == kDigits &&
                              digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos);
  std::uint64_t bits = 0;
  if (hex) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return absent_cell(Absent::kGarbage, true);
  } else if (const auto number = parse_number<double>(text)) {
    if (!(*number >= 0 && *number < 9e15) || *number != std::floor(*number)) return absent_cell(Absent::kGarbage);
    bits = static_cast<std::uint64_t>(*number);
  } else if (const auto words = reasons_in_words(text)) {
    return {*words, 0, false};
  } else {
    return absent_cell(Absent::kGarbage, true);
  }
  if (bits > static_cast<std::uint64_t>(rule.high)) return absent_cell(Absent::kGarbage);
  const auto mask = static_cast<std::int64_t>(bits);
  return {rule.perfcap ? bits_of_perfcap(mask) : mask, 0, false};
}

CellValue read_special(std::string_view text, ColumnRule& rule) {
  if (const auto reason = absence_of(text)) return absent_cell(*reason);
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
    if (const auto is = flag_of(text)) return {*is ? rule.reason_bit : 0, 0, false};
    if (const auto reason = absence_of(text)) return absent_cell(*reason);
    return absent_cell(Absent::kGarbage, true);
  }
  if (rule.metric == Metric::kPerformanceState && rule.role == ColumnRole::kMetric && text.size() > 1 && text[0] == 'P')
    text.remove_prefix(1);
  if (rule.metric == Metric::kEventReasons) return read_reasons(text, rule);
  if (text.size() > 2 && text.front() == '(' && text.back() == ')')  // rocm-smi's "(1700Mhz)"
    text = text.substr(1, text.size() - 2);
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
