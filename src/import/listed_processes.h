// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/recording.h"

namespace headroom {

// Of answers that list the processes of each GPU, one after the other: whose they were, and which of them the last
// answer lists.
class ListedProcesses {
 public:
  // "alice python" on a GPU, by its index.
  void user(std::string_view gpu, std::string_view who);
  // What one answer lists of programs that compute on a GPU, which may be nothing; `time` is the answer's.
  void answer(const std::string& gpu, std::vector<std::string> names, std::string_view time);
  // users.GPU, listed.GPU and gone.GPU of RecordingMeta::extra.
  void tell(Attrs& extra) const;

 private:
  struct Last {
    std::vector<std::string> now, before;  // of the last answer; of the last one that lists any
    std::string time;                      // of that one
  };
  std::map<std::string, std::set<std::string>, std::less<>> users_;  // by GPU
  std::map<std::string, Last, std::less<>> last_;
};

}  // namespace headroom
