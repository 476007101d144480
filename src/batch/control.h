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
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> open(Loop& loop, const std::string& folder,
                                                                   Answer answer);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  ControlServer(Loop& loop, std::string path, Fd listening, Answer answer);
  void accept();
  void read(int fd);

  struct Client {
    Fd fd;
    std::string request;
  };
  Loop& loop_;
  std::string path_;
  Fd listening_;
  Answer answer_;
  std::map<int, Client> clients_;
};

// What the running batch in `folder` answers. kNotFound: none runs there.
[[nodiscard]] Result<std::string> ask(const std::string& folder, const std::string& request);

// The folder's lock, held by the batch and, after it died, by its guardian. kBusy: held.
[[nodiscard]] Result<Fd> lock_folder(const std::string& folder);

}  // namespace headroom::batch
