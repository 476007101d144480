// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

// What the tests of every room may need.
namespace headroom {

// Paths, by tests/checkout.cc. Of what lies in the checkout: "docs/doctor.md".
[[nodiscard]] std::string in_checkout(std::string_view below);
// Of what is built beside the test: "inject/marks_program".
[[nodiscard]] std::string in_build(std::string_view below);

}  // namespace headroom
