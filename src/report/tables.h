// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

// What documents are made of, apart from how they are written. Text from outside is as it came: who writes it escapes
// it.
namespace headroom::report {

struct Table {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // as long as the head
  std::size_t words = 1;                       // columns from the left that are words; the others are figures
  std::string note;                            // below it; "": none
};

struct Point {
  std::string label, text;
  bool code = false;  // a command, a path
};

}  // namespace headroom::report
