// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace headroom::report::html {

// All between <style> and </style>. The colours of accounts begin with the palette of Okabe and Ito for all kinds of
// colour vision (2008); neighbours in the order of accounts differ in lightness, too, and words stand beside each.
extern const std::string_view kStyle;

// Its SHA-256 in base64, by which the content policy allows it and no other. tests/e2e/test_report_html.py tells the
// new one when the style has changed.
inline constexpr std::string_view kStyleHash = "7kWJv7abQkvf3qsA2PKFCWZleN3NzPrPFOXZRNBYwXA=";

}  // namespace headroom::report::html
