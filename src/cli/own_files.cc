// SPDX-License-Identifier: Apache-2.0
#include "cli/own_files.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "report/beginning.h"

namespace headroom::cli {

void declare_force(CLI::App& app, bool& force) {
  app.add_flag("--force", force, "replace a file that this verb did not write, too; a recording is never replaced");
}

MayReplace own_json(std::string_view verb, std::string_view schema, bool force) {
  return {
      .writer = fmt::format("headroom {}", verb), .marks = {fmt::format(R"({{"schema":"{}/)", schema)}, .all = force};
}

MayReplace own_document(std::string_view verb, std::string_view format, bool force) {
  if (format == "json") return own_json(verb, fmt::format("headroom.{}", verb), force);
  MayReplace may{.writer = fmt::format("headroom {}", verb), .marks = {}, .all = force};
  const auto add = [&](std::string_view writer) {
    may.marks.push_back(format == "html" ? report::html_beginning(writer) : report::markdown_beginning(writer));
  };
  add(verb);
  if (verb == "report") add("study");  // which a report of a storage is
  return may;
}

}  // namespace headroom::cli
