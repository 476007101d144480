// SPDX-License-Identifier: Apache-2.0
#include "cli/artefacts.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <map>

#include "base/answers.h"
#include "base/human.h"
#include "base/regular_file.h"
#include "compare/artefact.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 100'000, kMostBytes = std::size_t{256} << 20;

// Path below the folder -> path.
Result<std::map<std::string, std::string>> files_of(const std::string& path) {
  HR_TRYV(answers(path));
  std::error_code error;
  std::map<std::string, std::string> files;
  if (fs::is_regular_file(path, error)) return std::map<std::string, std::string>{{"", path}};
  if (!fs::is_directory(path, error))
    return fail(Errc::kNotFound, fmt::format("--artefacts: {} is no file and no folder", path));
  for (fs::recursive_directory_iterator at(path, error), end; at != end && !error; at.increment(error)) {
    if (!at->is_regular_file(error)) continue;
    files.emplace(at->path().lexically_relative(path).string(), at->path().string());
    if (files.size() > kMostFiles)
      return fail(Errc::kInvalidInput, fmt::format("--artefacts: {} holds more than {} files", path, kMostFiles),
                  "name the folder of what is to be compared");
  }
  if (error) return fail(Errc::kIo, fmt::format("--artefacts: {}: {}", path, error.message()));
  return files;
}

ComparedArtefact compare_files(const std::string& name, const std::string& a, const std::string& b, double tolerance) {
  const auto text_a = read_regular(a, kMostBytes), text_b = read_regular(b, kMostBytes);
  if (!text_a || !text_b) return {name, false, "not compared: " + (text_a ? text_b : text_a).error().what};
  return compare::compare_artefact(name, *text_a, *text_b, tolerance);
}

}  // namespace

void declare_artefacts(CLI::App& app, ArtefactOptions& options) {
  app.add_option("--artefacts", options.paths, "what A left and what B left: two files or two folders")
      ->expected(2)
      ->type_name("PATH_A PATH_B");
  app.add_option("--tolerance", options.tolerance,
                 "by how much numbers in artefacts may differ, relative (default 1e-6)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("RATIO");
}

Result<std::vector<ComparedArtefact>> compare_artefacts(const std::string& a, const std::string& b, double tolerance) {
  HR_TRY(const auto files_a, files_of(a));
  HR_TRY(const auto files_b, files_of(b));
  std::vector<ComparedArtefact> result;
  for (const auto& [name, path] : files_a) {
    const std::string shown = name.empty() ? fs::path(path).filename().string() : name;
    if (const auto other = files_b.find(name); other != files_b.end())
      result.push_back(compare_files(shown, path, other->second, tolerance));
    else
      result.push_back({shown, false, "only in A"});
  }
  for (const auto& [name, path] : files_b)
    if (!files_a.contains(name))
      result.push_back({name.empty() ? fs::path(path).filename().string() : name, false, "only in B"});
  return result;
}

}  // namespace headroom::cli
