// SPDX-License-Identifier: Apache-2.0
#include "cli/document_file.h"

#include <CLI/CLI.hpp>

#include "base/human.h"
#include "cli/output.h"
#include "cli/own_files.h"

namespace headroom::cli {

namespace {

// Its JSON is a plan, to be verified later.
bool has_json(std::string_view verb) { return verb == "study"; }

Result<std::string> format_of(std::string_view verb, const std::string& path, const std::string& said) {
  if (!said.empty()) return said;
  if (path.empty() || path == "-") return "html";
  for (const auto& [ending, format] :
       {std::pair(".html", "html"), std::pair(".htm", "html"), std::pair(".md", "md"), std::pair(".markdown", "md")})
    if (path.ends_with(ending)) return format;
  const bool json = has_json(verb);
  if (json && path.ends_with(".json")) return "json";
  return fail(
      Errc::kInvalidInput,
      fmt::format("--output: '{}' ends neither with .html nor with .md{}", path, json ? ", nor with .json" : ""),
      json ? "name it report.html, report.md or plan.json" : "name it report.html or report.md");
}

}  // namespace

Result<DocumentFile> document_file(std::string_view verb, const DocumentOptions& options) {
  HR_TRY(const std::string format, format_of(verb, options.path, options.format));
  DocumentFile file{options.path, format, own_document(verb, format, options.force)};
  HR_TRYV(can_write_to(file.path, file.may));
  return file;
}

Result<void> write_document(const DocumentFile& file, const std::string& text) {
  if (file.path == "-") {
    put(text);
    return {};
  }
  HR_TRYV(write_to(file.path, file.may, text));
  say(fmt::format("{}: {} ({})", file.format == "json" ? "plan" : "report", file.path,
                  human_bytes(static_cast<std::int64_t>(text.size()))));
  return {};
}

void declare_document(CLI::App& app, DocumentOptions& options, const std::string& what) {
  app.add_option("-o,--output", options.path, what)->type_name("FILE");
  declare_force(app, options.force);
}

}  // namespace headroom::cli
