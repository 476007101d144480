// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

// What the tests of every room may need.
namespace headroom {

// The path of what lies in the checkout: "docs/doctor.md". Defined in tests/checkout.cc.
[[nodiscard]] std::string in_checkout(std::string_view below);

}  // namespace headroom
