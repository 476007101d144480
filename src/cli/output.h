// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/output_file.h"
#include "base/result.h"
#include "export/output.h"

// What goes to people and programs on standard output and standard error.
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

}  // namespace headroom::cli
