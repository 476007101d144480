// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

// The file that a verb's answer goes to as a document (report/document.h and its like).
namespace headroom::cli {

struct DocumentFile {
  std::string path;    // "-": standard output
  std::string format;  // "html", "md"
};

// "html" or "md", by what was said or by the name's end, and whether it can be written there: before the work begins.
[[nodiscard]] Result<DocumentFile> document_file(const std::string& path, const std::string& said = "");
[[nodiscard]] Result<void> write_document(const DocumentFile& file, const std::string& text);  // says where it lies

// In the file's form.
template <class Document>
[[nodiscard]] Result<void> write_document(const DocumentFile& file, const Document& document) {
  return write_document(file, file.format == "html" ? to_html(document) : to_markdown(document));
}

// --output of verbs that say their answer as text, too.
void declare_document(CLI::App& app, std::string& path);

}  // namespace headroom::cli
