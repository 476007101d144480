// SPDX-License-Identifier: Apache-2.0
#include "cli/document_file.h"

#include <CLI/CLI.hpp>

#include "base/human.h"
#include "cli/output.h"
#include "cli/own_files.h"

namespace headroom::cli {

namespace {

Result<std::string> format_of(const std::string& path, const std::string& said) {
  if (!said.empty()) return said;
  if (path.empty() || path == "-") return "html";
  for (const auto& [ending, format] :
       {std::pair(".html", "html"), std::pair(".htm", "html"), std::pair(".md", "md"), std::pair(".markdown", "md")})
    if (path.ends_with(ending)) return format;
  return fail(Errc::kInvalidInput, fmt::format("--output: '{}' ends neither with .html nor with .md", path),
              "name it report.html or report.md");
}

}  // namespace

Result<DocumentFile> document_file(std::string_view verb, const DocumentOptions& options) {
  HR_TRY(const std::string format, format_of(options.path, options.format));
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
  say(fmt::format("report: {} ({})", file.path, human_bytes(static_cast<std::int64_t>(text.size()))));
  return {};
}

void declare_document(CLI::App& app, DocumentOptions& options) {
  app.add_option("-o,--output", options.path, "write it as a document, too: a file that ends with .html or .md")
      ->type_name("FILE");
  declare_force(app, options.force);
}

}  // namespace headroom::cli
