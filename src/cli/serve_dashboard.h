// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "cli/serve_catalog.h"
#include "cli/serve_library.h"
#include "live/loop.h"
#include "serve/connections.h"
#include "serve/guard.h"
#include "serve/worker.h"

namespace headroom::cli {

// The answers of `headroom serve`. What reads files is done by one worker, in the order in which it was asked for.
// Files are looked at while somebody listens to events or asks; with nobody there, nothing is woken.
class Dashboard {
 public:
  Dashboard(Loop& loop, Catalog catalog, Library library, serve::Door door, bool dcgm);
  [[nodiscard]] Result<void> open(Fd listening);

 private:
  using Id = serve::Connections::Id;
  void handle(Id id, const serve::Request& request);
  void ask(Id id, const serve::Route& route, const serve::Request& request);
  void listen(Id id);
  void watch(Nanos in);
  void look();
  void nobody_is_there();

  // These run on the worker's thread.
  [[nodiscard]] serve::Response answer(const serve::Route& route, const serve::Request& request);
  [[nodiscard]] Result<serve::Response> answer_of(const serve::Route& route, const serve::Request& request);
  [[nodiscard]] Result<std::string> path_of(const std::string& key);
  [[nodiscard]] Result<Library::Text> of_recording(const serve::Route& route, const serve::Request& request);
  [[nodiscard]] Result<serve::Response> metrics(const serve::Route& route, const serve::Request& request);
  void refresh(Nanos age);
  [[nodiscard]] Catalog::Changes look_again();
  [[nodiscard]] std::string events_of(const Catalog::Changes& changes) const;

  Loop& loop_;
  Catalog catalog_;          // of the worker, once it works
  Library library_;          // likewise
  Nanos look_cost_ = 0;      // likewise: CPU of the last look
  Catalog::Changes unseen_;  // likewise: found when somebody asked, for those who listen
  serve::Door door_;
  bool dcgm_;
  bool looking_ = false;
  std::size_t asked_ = 0;  // of the worker, and not answered yet
  Loop::TimerId watch_ = 0;
  std::unique_ptr<serve::Connections> connections_;
  serve::Worker worker_;  // the last one: it ends before what it works on
};

}  // namespace headroom::cli
