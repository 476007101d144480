// SPDX-License-Identifier: Apache-2.0
#include "cli/document_file.h"

#include "base/human.h"
#include "base/output_file.h"
#include "cli/output.h"

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

Result<DocumentFile> document_file(const std::string& path, const std::string& said) {
  HR_TRY(const std::string format, format_of(path, said));
  if (!path.empty() && path != "-") HR_TRYV(can_write(path));
  return DocumentFile{path, format};
}

Result<void> write_document(const DocumentFile& file, const std::string& text) {
  if (file.path == "-") {
    put(text);
    return {};
  }
  HR_TRYV(write_to(file.path, [&](const Output& out) { return out(text); }));
  say(fmt::format("report: {} ({})", file.path, human_bytes(static_cast<std::int64_t>(text.size()))));
  return {};
}

void declare_document(CLI::App& app, std::string& path) {
  app.add_option("-o,--output", path, "write it as a document, too: a file that ends with .html or .md")
      ->type_name("FILE");
}

}  // namespace headroom::cli
