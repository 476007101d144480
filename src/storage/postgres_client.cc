// SPDX-License-Identifier: Apache-2.0
#include "storage/postgres_client.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <optional>

#include "base/secrets.h"
#include "base/strings.h"

namespace headroom {

Result<Libpq> Libpq::load(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(Errc::kNotFound, fmt::format("{}, PostgreSQL's client library, is not installed here", path),
                "install it: apt install libpq5, dnf install libpq, or conda install libpq and its lib folder in "
                "LD_LIBRARY_PATH");
  Libpq libpq;
  libpq.library = std::shared_ptr<void>(library, [](void* handle) { ::dlclose(handle); });
#define HEADROOM_LIBPQ_LOAD(member, result, arguments, name)                       \
  libpq.member = reinterpret_cast<decltype(libpq.member)>(::dlsym(library, name)); \
  if (libpq.member == nullptr) return fail(Errc::kUnsupported, fmt::format("{} has no {}", path, name));
  HEADROOM_LIBPQ_FUNCTIONS(HEADROOM_LIBPQ_LOAD)
#undef HEADROOM_LIBPQ_LOAD
  return libpq;
}

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int letter = std::tolower(static_cast<unsigned char>(c));
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// As Python's urllib does it: what is no escape stays.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    decoded += low >= 0 ? static_cast<char>(high * 16 + low) : text[i];
    if (low >= 0) i += 2;
  }
  return decoded;
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace

Result<PostgresUrl> parse_postgres_url(std::string_view name) {
  constexpr std::string_view kScheme = "postgresql://";
  const std::size_t colon = name.find("://");
  std::string_view rest = colon == std::string_view::npos ? name : name.substr(colon + 3);
  PostgresUrl url{.connect = std::string(kScheme), .shown = std::string(kScheme)};
  const std::size_t at = rest.find('@');
  const std::string_view place = at == std::string_view::npos ? rest : rest.substr(0, rest.find('?', at));
  if (std::count(place.begin(), place.end(), '@') > 1)
    return fail(Errc::kInvalidInput, "a PostgreSQL URL with more than one @", "write %40 for an @ in the password");
  // SQLAlchemy's rule: a user has no ':' and no '/', and a password no '@'.
  const std::size_t user_end = std::min(rest.find_first_of(":/?"), rest.size());
  if (at != std::string_view::npos && user_end <= at && (user_end == at || rest[user_end] == ':')) {
    const std::string user = percent_encoded(percent_decoded(rest.substr(0, user_end)));
    url.connect += user;
    url.shown += user;
    if (user_end < at) {
      url.password = percent_decoded(rest.substr(user_end + 1, at - user_end - 1));
      url.connect += ":" + percent_encoded(url.password);
    }
    url.connect += "@";
    url.shown += "@";
    rest.remove_prefix(at + 1);
  }
  // "postgresql://user:password/database" lacks its host: what stands there is a password, and is not repeated.
  const std::string_view hosts = at == std::string_view::npos ? rest.substr(0, rest.find_first_of("/?#")) : "";
  for (const std::string_view host : split(hosts, ',')) {
    const std::size_t port = host.find(':', host.rfind(']') == std::string_view::npos ? 0 : host.rfind(']'));
    if (port != std::string_view::npos && host.find_first_not_of("0123456789", port + 1) != std::string_view::npos)
      return fail(Errc::kInvalidInput, "a PostgreSQL URL whose port is no number",
                  "postgresql://USER:PASSWORD@HOST:PORT/DATABASE; is the @HOST missing?");
  }
  url.connect += rest;
  url.shown += rest.substr(0, rest.find_first_of("?#"));
  const std::size_t option = rest.find("password=");
  if (option != std::string_view::npos && url.password.empty()) {
    const std::string_view value = rest.substr(option + 9);
    url.password = percent_decoded(value.substr(0, value.find('&')));
  }
  return url;
}

std::string without_password(std::string text, const PostgresUrl& url) {
  const auto is_word = [&text](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (const std::string& secret : {url.password, percent_encoded(url.password)}) {
    for (std::size_t at = 0; !secret.empty() && (at = text.find(secret, at)) != std::string::npos; ++at)
      if (!is_word(at - 1) && !is_word(at + secret.size())) text.replace(at, secret.size(), kHidden);
  }
  return text;
}

}  // namespace headroom
