// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_file_parameters.h"

#include <algorithm>

#include "base/human.h"
#include "tasks/task_list.h"

namespace headroom::tasks {

namespace {

std::string many(std::size_t count) { return human_count(static_cast<std::int64_t>(count)); }

Result<void> check_name(const TomlTable& table, const std::string& name, const std::vector<ParameterAxis>& axes) {
  if (auto good = check_parameter_name(name); !good) return tl::unexpected(within(table.place(name), good.error()));
  for (const ParameterAxis& axis : axes)
    if (std::find(axis.names.begin(), axis.names.end(), name) != axis.names.end())
      return tl::unexpected(table.wrong(name, "is a parameter already", "a parameter is in one of grid, zip and list"));
  return {};
}

// { from = 0, to = 9, step = 1 }: both ends are in it.
Result<std::vector<std::string>> range_of(const TomlTable& table, const std::string& name) {
  HR_TRY(const auto range, table.table(name));
  HR_TRYV(range->only({"from", "to", "step"}));
  constexpr std::int64_t kFar = std::int64_t{1} << 52;
  HR_TRY(const auto from, range->integer("from", -kFar, kFar));
  HR_TRY(const auto to, range->integer("to", -kFar, kFar));
  HR_TRY(const auto step, range->integer("step", 1, kFar));
  if (!from || !to) return tl::unexpected(table.wrong(name, "lacks an end", "write { from = 0, to = 9 }"));
  if (*to < *from) return tl::unexpected(table.wrong(name, "is an empty range", "'to' is at least 'from'"));
  const auto count = static_cast<std::size_t>((*to - *from) / step.value_or(1)) + 1;
  if (count > kMostTasks)
    return tl::unexpected(table.wrong(name, fmt::format("has {} values", many(count)),
                                      fmt::format("a batch has at most {} tasks", many(kMostTasks))));
  std::vector<std::string> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(std::to_string(*from + static_cast<std::int64_t>(i) * step.value_or(1)));
  return values;
}

Result<std::vector<std::string>> values_of(const TomlTable& table, const std::string& name) {
  if (table.is_table(name)) return range_of(table, name);
  HR_TRY(std::vector<std::string> values, table.scalars(name));
  if (values.empty()) return tl::unexpected(table.wrong(name, "is an empty list", "give at least one value"));
  return values;
}

Result<void> add_grid(const TomlTable& grid, std::vector<ParameterAxis>& axes) {
  if (grid.keys().empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: {} has no parameters", grid.place(""), grid.label()),
                "write NAME = [ values ], or remove it");
  for (const std::string& name : grid.keys()) {
    HR_TRYV(check_name(grid, name, axes));
    HR_TRY(const std::vector<std::string> values, values_of(grid, name));
    ParameterAxis axis{{name}, {}};
    for (const std::string& value : values) axis.rows.push_back({value});
    axes.push_back(std::move(axis));
  }
  return {};
}

Result<void> add_zip(const TomlTable& zip, std::vector<ParameterAxis>& axes) {
  ParameterAxis axis;
  for (const std::string& name : zip.keys()) {
    HR_TRYV(check_name(zip, name, axes));
    HR_TRY(const std::vector<std::string> values, values_of(zip, name));
    if (axis.names.empty()) axis.rows.resize(values.size());
    if (values.size() != axis.rows.size())
      return tl::unexpected(
          zip.wrong(name, fmt::format("has {} values, '{}' has {}", values.size(), axis.names[0], axis.rows.size()),
                    "lists of a zip are equally long"));
    axis.names.push_back(name);
    for (std::size_t i = 0; i < values.size(); ++i) axis.rows[i].push_back(values[i]);
  }
  if (axis.names.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: {} has no parameters", zip.place(""), zip.label()),
                "write NAME = [ values ], or remove it");
  axes.push_back(std::move(axis));
  return {};
}

Result<void> add_list(const std::vector<TomlTable>& rows, std::vector<ParameterAxis>& axes) {
  ParameterAxis axis;
  axis.names = rows[0].keys();
  if (axis.names.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: {} has no parameters", rows[0].place(""), rows[0].label()),
                "write NAME = value, or remove it");
  for (const std::string& name : axis.names) HR_TRYV(check_name(rows[0], name, axes));
  const std::vector<std::string_view> known(axis.names.begin(), axis.names.end());
  for (const TomlTable& row : rows) {
    HR_TRYV(row.only(known));
    axis.rows.emplace_back();
    for (const std::string& name : axis.names) {
      if (!row.has(name))
        return tl::unexpected(row.wrong(name, "is missing", "rows of a list have the same parameters"));
      HR_TRY(std::string value, row.scalar(name));
      axis.rows.back().push_back(std::move(value));
    }
  }
  axes.push_back(std::move(axis));
  return {};
}

}  // namespace

Result<std::vector<ParameterAxis>> parameter_axes(const TomlTable& task) {
  std::vector<ParameterAxis> axes;
  HR_TRY(const auto grid, task.table("grid"));
  if (grid) HR_TRYV(add_grid(*grid, axes));
  HR_TRY(const auto zip, task.table("zip"));
  if (zip) HR_TRYV(add_zip(*zip, axes));
  HR_TRY(const auto list, task.tables("list"));
  if (!list.empty()) {
    HR_TRYV(add_list(list, axes));
  } else if (task.has("list")) {
    return tl::unexpected(task.wrong("list", "is an empty list", "give at least one row"));
  }
  double product = 1;
  for (const ParameterAxis& axis : axes) product *= static_cast<double>(axis.rows.size());
  if (product > static_cast<double>(kMostTasks))
    return fail(Errc::kInvalidInput,
                fmt::format("{}: {} combinations of parameters", (grid ? *grid : task).place(""),
                            product < 9e15 ? many(static_cast<std::size_t>(product)) : fmt::format("{:.1e}", product)),
                fmt::format("a batch has at most {} tasks; zip parameters that belong together", many(kMostTasks)));
  return axes;
}

std::size_t combinations(const std::vector<ParameterAxis>& axes) {
  std::size_t product = 1;
  for (const ParameterAxis& axis : axes) product *= axis.rows.size();
  return product;
}

Parameters combination(const std::vector<ParameterAxis>& axes, std::size_t number) {
  std::vector<std::size_t> at(axes.size());
  for (std::size_t i = axes.size(); i-- > 0; number /= axes[i].rows.size()) at[i] = number % axes[i].rows.size();
  Parameters parameters;
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t k = 0; k < axes[i].names.size(); ++k)
      parameters.emplace_back(axes[i].names[k], axes[i].rows[at[i]][k]);
  return parameters;
}

}  // namespace headroom::tasks
