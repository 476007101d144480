// SPDX-License-Identifier: Apache-2.0
#include "import/jobstats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/strings.h"

namespace headroom {

namespace {

constexpr std::string_view kMark = "JS1:";
constexpr std::size_t kLongestLine = std::size_t{1} << 20;      // a summary of a thousand nodes has 100 KiB
constexpr std::size_t kLargestSummary = std::size_t{16} << 20;  // unpacked
constexpr double kLongestSeconds = 1e9;                         // of a job
constexpr std::size_t kMostGpus = 100'000;

// Nothing where `text` is no base64.
std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    std::uint32_t value = 0;
    if (c >= 'A' && c <= 'Z')
      value = static_cast<std::uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      value = static_cast<std::uint32_t>(c - 'a' + 26);
    else if (is_digit(c))
      value = static_cast<std::uint32_t>(c - '0' + 52);
    else if (c == '+')
      value = 62;
    else if (c == '/')
      value = 63;
    else
      return std::nullopt;
    bits = bits << 6 | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFFU);
  }
  return bytes;
}

using Json = nlohmann::json;

std::optional<double> number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// The summary's own words for what is wrong with it.
tl::unexpected<std::string> wrong(std::string what) { return tl::unexpected(std::move(what)); }

tl::expected<Json, std::string> unpacked(std::string_view comment) {
  const auto packed = from_base64(comment);
  if (!packed) return wrong("the summary is no base64");
  if (!is_packed(*packed)) return wrong("the summary is not packed by gzip");
  ByteStream stream = ByteStream::of(*packed);
  stream.be_bounded(kLargestSummary);
  const auto text = stream.rest(kLargestSummary);
  if (!text || !stream.cut().empty()) return wrong("the summary is cut or damaged");
  Json json = parse_json<Json>(*text);
  if (!json.is_object() || !json.contains("nodes") || !json["nodes"].is_object())
    return wrong("the summary is no JSON of nodes");
  return json;
}

// What the GPUs of one node add to `job`.
tl::expected<std::size_t, std::string> add_node(const Json& node, AveragedJob& job) {
  const auto means = node.find("gpu_utilization");
  if (means == node.end()) return std::size_t{0};
  if (!means->is_object() || means->size() > kMostGpus) return wrong("gpu_utilization is no list of GPUs");
  for (const auto& [gpu, value] : means->items()) {
    if (!value.is_number()) return wrong("a mean utilisation is no number");
    const double mean = value.get<double>() / 100;
    if (!(mean >= 0 && mean <= 1)) return wrong("a mean utilisation is not within 0 and 100");
    job.measured += job.span;
    job.utilised += static_cast<Nanos>(mean * static_cast<double>(job.span));
    if (mean == 0) job.zero += job.span;
  }
  const auto used = node.find("gpu_used_memory"), total = node.find("gpu_total_memory");
  if (used != node.end() && total != node.end() && used->is_object() && total->is_object())
    for (const auto& [gpu, value] : used->items())
      if (const auto all = number_of(*total, gpu.c_str()); all && *all > 0 && value.is_number())
        job.memory_ratio = std::max(job.memory_ratio.value_or(0), std::clamp(value.get<double>() / *all, 0.0, 1.0));
  return means->size();
}

// `job` has its names; `elapsed`: of sacct, seconds.
tl::expected<SummaryKind, std::string> summary_of(std::string_view comment, std::optional<double> elapsed,
                                                  AveragedJob& job) {
  auto json = unpacked(comment);
  if (!json) return wrong(json.error());
  const auto length = number_of(*json, "total_time");
  const double lasted = length.value_or(elapsed.value_or(-1));
  if (!(lasted >= 0 && lasted <= kLongestSeconds))
    return wrong("neither the summary nor elapsedraw says how long it ran");
  job.span = static_cast<Nanos>(lasted * static_cast<double>(kSecond));
  std::size_t gpus = 0;
  for (const auto& [name, node] : (*json)["nodes"].items()) {
    if (!node.is_object()) return wrong("a node of the summary is no object");
    const auto more = add_node(node, job);
    if (!more) return wrong(more.error());
    gpus += *more;
    if (gpus > kMostGpus) return wrong(fmt::format("more than {} GPUs", kMostGpus));
  }
  const double said = number_of(*json, "gpus").value_or(0);
  if (!(said >= 0 && said <= static_cast<double>(kMostGpus))) return wrong("gpus is no number of GPUs");
  job.gpus = std::max(gpus, static_cast<std::size_t>(said));
  if (job.gpus > 0 && job.span > std::numeric_limits<Nanos>::max() / 4 / static_cast<Nanos>(job.gpus))
    return wrong("more GPU time than there can be");
  job.held = job.span * static_cast<Nanos>(job.gpus);
  return job.gpus > 0 ? SummaryKind::kSummary : SummaryKind::kWithoutGpus;
}

// "gres/gpu:a100=4" of "billing=8,gres/gpu:a100=4,gres/gpu=4,node=1": "a100".
std::string model_of(std::string_view tres) {
  constexpr std::string_view kTyped = "gres/gpu:";
  for (const std::string_view part : split(tres, ','))
    if (part.starts_with(kTyped)) return std::string(part.substr(kTyped.size(), part.find('=') - kTyped.size()));
  return "";
}

class SacctReader {
 public:
  SacctReader(const std::string& name, const std::function<void(const SacctRow&)>& take) : name_(name), take_(take) {}

  Result<void> line(std::string_view text, bool too_long) {
    ++number_;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) return {};
    if (names_.empty()) return header(text);
    if (too_long) {
      unreadable(fmt::format("more than {} bytes in a line", kLongestLine));
    } else {
      row(split(text, '|'));
    }
    return {};
  }

  [[nodiscard]] Result<void> end() const {
    if (names_.empty()) return no_table("nothing stands in it");
    return {};
  }

 private:
  [[nodiscard]] Result<void> no_table(std::string_view why) const {
    return fail(Errc::kInvalidInput, fmt::format("{}: {}", name_, why),
                fmt::format("such a table is printed by: {}", kSacctCommand));
  }

  Result<void> header(std::string_view text) {
    for (const std::string_view field : split(text, '|')) names_.push_back(lower(trim(field)));
    if (std::find(names_.begin(), names_.end(), "admincomment") == names_.end())
      return no_table(names_.size() == 1 ? "its first line names no columns with | between them"
                                         : "it has no column AdminComment, where Jobstats keeps its summaries");
    return {};
  }

  [[nodiscard]] std::string_view field(const std::vector<std::string_view>& fields, std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    return at == names_.end() ? std::string_view() : trim(fields[static_cast<std::size_t>(at - names_.begin())]);
  }

  void unreadable(const std::string& why) {
    take_({SummaryKind::kUnreadable, {}, fmt::format("{}:{}: {}", name_, number_, why)});
  }

  void row(const std::vector<std::string_view>& fields) {
    if (fields.size() != names_.size())
      return unreadable(fmt::format("{} fields, where the first line has {}", fields.size(), names_.size()));
    const auto first_of = [&](std::string_view one, std::string_view other) {
      const std::string_view text = field(fields, one);
      return std::string(text.empty() ? field(fields, other) : text);
    };
    SacctRow row;
    row.job.id = first_of("jobid", "jobidraw");
    const std::string_view comment = field(fields, "admincomment");
    if (!comment.starts_with(kMark) && row.job.id.find('.') != std::string::npos) return;
    const auto named = [&](FleetBy by) -> std::string& { return row.job.names[static_cast<std::size_t>(by)]; };
    named(FleetBy::kUser) = field(fields, "user");
    named(FleetBy::kProject) = field(fields, "account");
    named(FleetBy::kJob) = row.job.id;
    named(FleetBy::kCommand) = field(fields, "jobname");
    named(FleetBy::kHost) = field(fields, "nodelist");
    named(FleetBy::kGpu) = model_of(first_of("alloctres", "reqtres"));
    const std::string_view summary = comment.substr(std::min(comment.size(), kMark.size()));
    if (!comment.starts_with(kMark) || summary == "None" || summary.empty()) {
      row.kind = SummaryKind::kNoSummary;
    } else if (summary == "Short") {
      row.kind = SummaryKind::kTooShort;
    } else {
      const auto kind = summary_of(summary, parse_number<double>(field(fields, "elapsedraw")), row.job);
      if (!kind) return unreadable(kind.error());
      row.kind = *kind;
    }
    take_(row);
  }

  const std::string& name_;
  const std::function<void(const SacctRow&)>& take_;
  std::vector<std::string> names_;  // of the columns, in small letters
  std::size_t number_ = 0;
};

}  // namespace

Result<void> read_sacct(const std::string& name, ByteStream& bytes, const std::function<void(const SacctRow&)>& take) {
  SacctReader reader(name, take);
  std::string line;
  bool too_long = false;
  for (std::string_view block = bytes.next(); !block.empty(); block = bytes.next()) {
    while (!block.empty()) {
      const std::size_t end = block.find('\n');
      const std::string_view part = block.substr(0, end);
      too_long |= line.size() + part.size() > kLongestLine;
      if (!too_long) line += part;
      block.remove_prefix(end == std::string_view::npos ? block.size() : end + 1);
      if (end == std::string_view::npos) break;
      HR_TRYV(reader.line(line, too_long));
      line.clear();
      too_long = false;
    }
  }
  HR_TRYV(bytes.sound());
  if (!line.empty() || too_long) HR_TRYV(reader.line(line, too_long));
  return reader.end();
}

}  // namespace headroom
