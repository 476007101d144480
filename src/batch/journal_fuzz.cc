// SPDX-License-Identifier: Apache-2.0
// Any file is a journal that can be read, or an error that says where, and so is a recording with a batch copied into
// it; any text in its columns of JSON is facts, or none; any bytes are a request to the running batch, which answers or
// closes.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "batch/control.h"
#include "batch/journal_rows.h"

namespace {

using namespace headroom;

// A folder for the files under test, removed at exit; in memory where there is such a place.
class Folder {
 public:
  Folder() {
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    path_ = (memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/headroom-fuzz-XXXXXX";
    HR_CHECK(::mkdtemp(path_.data()) != nullptr, "a temporary folder is needed");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void read_as_journal(const std::string& folder, std::string_view bytes) {
  const Fd fd = std::move(*open_write(batch::journal_path(folder)));
  HR_CHECK(write_all(fd.get(), bytes), "the temporary folder is full");
  for (const auto& contents : {batch::read_journal(folder), batch::read_copied_journal(batch::journal_path(folder))}) {
    if (!contents) {
      HR_CHECK(contents.error().what.find(folder) != std::string::npos, "an error says where");
      continue;
    }
    for (const auto& attempt : contents->attempts)
      HR_CHECK(static_cast<std::size_t>(attempt.task) < contents->tasks.size(), "an attempt of a task");
  }
}

void read_as_facts(std::string_view bytes) {
  Attempt attempt;
  batch::take_start_facts(bytes, attempt);
  batch::take_end_facts(bytes, attempt);
}

// The batch's side of the socket: whatever comes, the client is answered or let go.
void send_as_request(const std::string& folder, std::string_view bytes) {
  auto loop = std::move(*Loop::create());
  const Fd directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto server = batch::ControlServer::open(*loop, directory, [](std::string_view request) {
    HR_CHECK(request.find('\n') == std::string_view::npos, "a request is a line");
    return std::string("ok\n");
  });
  HR_CHECK(server, "a control socket");
  const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/control.sock";
  std::memcpy(address.sun_path, path.data(), path.size());
  HR_CHECK(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "a client");
  (void)::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::shutdown(client.get(), SHUT_WR);
  const auto watched = loop->watch(client.get(), [&] {
    char answer[64];
    if (const ssize_t got = ::recv(client.get(), answer, sizeof answer, 0); got <= 0) loop->stop();
  });
  HR_CHECK(watched, "a loop");
  loop->run();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("SQLite format 3")) {
    read_as_journal(folder.path(), bytes);
    return 0;
  }
  read_as_facts(bytes);
  send_as_request(folder.path(), bytes);
  return 0;
}
