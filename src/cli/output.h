// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/output_file.h"
#include "base/result.h"
#include "cli/cli11.h"
#include "export/output.h"

// Where the answers of verbs go: standard output, standard error, and files that people name.
namespace headroom::cli {

// Before anything is opened: no file of ours may take the number of an output that the caller closed.
void reserve_standard_files();

// To standard output; safe from any thread. False, and remembered for output_code(), where that fails.
bool put(std::string_view text);
// To people, where fields come from outside: visible_lines() of it.
void put_visible(std::string_view text);
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  put_visible(fmt::format(format, std::forward<Args>(args)...));
}

// To a file that people named, which is there whole or not at all, or to standard output ("", "-").
[[nodiscard]] Result<void> write_to(const std::string& path, const MayReplace& may,
                                    const std::function<Result<void>(const Output&)>& write);
[[nodiscard]] Result<void> write_to(const std::string& path, const MayReplace& may, std::string_view text);
// The same question as can_write(), where "" and "-" are standard output.
[[nodiscard]] Result<void> can_write_to(const std::string& path, const MayReplace& may);

// The exit code of a verb that would return `code`: if something could not be written to standard output, that is said
// and what would have been a success is a failure.
[[nodiscard]] int output_code(int code);

// "headroom: what", and a second line for the next step, on standard error; safe from any thread.
void say(std::string_view what, std::string_view next = "");

// Small files of the user's own in the folder of state.

// The file, made where it is not there, locked until it is dropped: others hold it for milliseconds. kBusy: they do
// not.
[[nodiscard]] Result<Fd> locked_file(const std::string& path);

// Readable by the user alone, and there whole or as it was.
[[nodiscard]] Result<void> replace_private_file(const std::string& path, std::string_view text);

// --force. Without it a verb replaces its own earlier answers only, where people name a file.
void declare_force(CLI::App& app, bool& force);

// Permits to replace answers in JSON, of any version of `schema`, such as "headroom.plan".
[[nodiscard]] MayReplace own_json(std::string_view verb, std::string_view schema, bool force);
// Permits to replace documents of a verb, "html" or "md"; its JSON, "json".
[[nodiscard]] MayReplace own_document(std::string_view verb, std::string_view format, bool force);

// The file that a verb's answer goes to as a document (report/document.h and its like).

// The options of a document.
struct DocumentOptions {
  std::string path;    // "": none, or the verb's own choice; "-": standard output
  std::string format;  // "": by the name's end
  bool force = false;
};

struct DocumentFile {
  std::string path;    // "-": standard output
  std::string format;  // "html", "md"; of a study "json"
  MayReplace may = {};
};

// Its form, and whether `verb` can write it there: before the work begins.
[[nodiscard]] Result<DocumentFile> document_file(std::string_view verb, const DocumentOptions& options);
[[nodiscard]] Result<void> write_document(const DocumentFile& file, const std::string& text);  // says where it lies

// In the file's form.
template <class Document>
[[nodiscard]] Result<void> write_document(const DocumentFile& file, const Document& document) {
  return write_document(file, file.format == "html" ? to_html(document) : to_markdown(document));
}

// --output and --force of verbs that say their answer as text, too.
void declare_document(CLI::App& app, DocumentOptions& options,
                      const std::string& what = "write it as a document, too: a file that ends with .html or .md");

}  // namespace headroom::cli
