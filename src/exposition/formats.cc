// SPDX-License-Identifier: Apache-2.0
#include "exposition/formats.h"

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/result.h"
#include "base/visible.h"

namespace headroom::exposition {

namespace {

// Both formats are UTF-8; of control characters they have an escape for line ends only.
std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : visible_lines(text)) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\' || (c == '"' && quotes))
      (out += '\\') += c;
    else
      out += c;
  }
  return out;
}

void put_samples(const Family& family, std::string& out) {
  for (const Sample& sample : family.samples) {
    out += family.name;
    char before = '{';
    for (const Label& label : sample.labels) {
      out += fmt::format("{}{}=\"{}\"", before, label.name, escaped(label.value, true));
      before = ',';
    }
    out += fmt::format("{} {}\n", sample.labels.empty() ? "" : "}", decimal(sample.value, sample.decimals));
  }
}

struct Words {
  std::string_view type, suffix;  // suffix: what samples have after the family's name
};

Words openmetrics_words(FamilyType type) {
  switch (type) {
    case FamilyType::kCounter:
      return {"counter", "_total"};
    case FamilyType::kInfo:
      return {"info", "_info"};
    case FamilyType::kGauge:
      break;
  }
  return {"gauge", ""};
}

}  // namespace

std::string to_openmetrics(std::span<const Family> families) {
  std::string out;
  for (const Family& family : families) {
    const Words words = openmetrics_words(family.type);
    HR_CHECK(family.name.ends_with(words.suffix), "the name of a family tells its type");
    const std::string_view name(family.name.data(), family.name.size() - words.suffix.size());
    out += fmt::format("# TYPE {} {}\n", name, words.type);
    if (!family.unit.empty()) {
      HR_CHECK(name.ends_with("_" + family.unit), "the name of a family tells its unit");
      out += fmt::format("# UNIT {} {}\n", name, family.unit);
    }
    out += fmt::format("# HELP {} {}\n", name, escaped(family.help, true));
    put_samples(family, out);
  }
  return out + "# EOF\n";
}

std::string to_prometheus(std::span<const Family> families) {
  std::string out;
  for (const Family& family : families) {
    out += fmt::format("# HELP {} {}\n", family.name, escaped(family.help, false));
    out += fmt::format("# TYPE {} {}\n", family.name, family.type == FamilyType::kCounter ? "counter" : "gauge");
    put_samples(family, out);
  }
  return out;
}

}  // namespace headroom::exposition
