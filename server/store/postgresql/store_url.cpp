#include "server/store/postgresql/store_url.hpp"

#include <libpq-fe.h>

#include <memory>
#include <string_view>

#include "base/error.hpp"

namespace cubind {

bool is_store_url(const std::string& text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

void check_store_url(const std::string& option, const std::string& url) {
  if (!is_store_url(url)) {
    throw Error(ErrorCode::InvalidArgument, option,
                "takes a URL such as postgresql://user@host/database; for a file of SQLite there is --db");
  }
  char* fault = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      PQconninfoParse(url.c_str(), &fault), PQconninfoFree);
  const std::unique_ptr<char, void (*)(void*)> owned_fault(fault, PQfreemem);
  if (!options) {
    std::string cause(fault ? fault : "out of memory");
    throw Error(ErrorCode::InvalidArgument, option, cause.substr(0, cause.find('\n')));
  }
  for (const PQconninfoOption* part = options.get(); part->keyword; ++part) {
    const bool is_secret =
        std::string_view(part->keyword) == "password" || std::string_view(part->keyword) == "sslpassword";
    if (is_secret && part->val) {
      throw Error(
          ErrorCode::InvalidArgument, option,
          "holds a password, which every user of the machine can see: put it as "
          "host:port:database:user:password into a file of mode 0600, and name that by PGPASSFILE or by "
          "?passfile=FILE in the URL");
    }
  }
}

}  // namespace cubind
