// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "live/loop.h"

namespace headroom::batch {

// A Unix socket in the batch's folder, by which another terminal asks the running batch: one line in, one answer out.
class ControlServer {
 public:
  using Answer = std::function<std::string(std::string_view request)>;
  // `directory` is the batch's folder, and has to outlive the server.
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> open(Loop& loop, const Fd& directory, Answer answer);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  ControlServer(Loop& loop, const Fd& directory, Fd listening, Answer answer);
  [[nodiscard]] Result<void> listen();
  void rest();
  void accept();
  [[nodiscard]] bool make_way();
  void read(int fd);
  void drop(int fd);

  struct Client {
    Fd fd;
    std::string request;
    Nanos since = 0;
    Loop::TimerId deadline = 0;
  };
  Loop& loop_;
  const Fd& directory_;
  Fd listening_;
  Answer answer_;
  std::map<int, Client> clients_;
  Loop::TimerId resting_ = 0;  // nobody is let in until then
};

// What the running batch in `folder` answers. kNotFound: none listens there. kNoPermission: another user's does. kBusy:
// it gave no answer within a few seconds.
[[nodiscard]] Result<std::string> ask(const std::string& folder, const std::string& request);

}  // namespace headroom::batch
