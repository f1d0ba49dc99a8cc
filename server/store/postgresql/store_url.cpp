#include "server/store/postgresql/store_url.hpp"

#include <libpq-fe.h>

#include <memory>
#include <string_view>

#include "base/error.hpp"

namespace cubind {

void check_store_url(const std::string& url) {
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://")) {
    throw Error(ErrorCode::InvalidArgument, "--store",
                "takes a URL such as postgresql://user@host/database; for a file of SQLite there is --db");
  }
  char* fault = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      PQconninfoParse(url.c_str(), &fault), PQconninfoFree);
  const std::unique_ptr<char, void (*)(void*)> owned_fault(fault, PQfreemem);
  if (!options) {
    std::string cause(fault ? fault : "out of memory");
    throw Error(ErrorCode::InvalidArgument, "--store", cause.substr(0, cause.find('\n')));
  }
  for (const PQconninfoOption* option = options.get(); option->keyword; ++option) {
    const bool is_secret =
        std::string_view(option->keyword) == "password" || std::string_view(option->keyword) == "sslpassword";
    if (is_secret && option->val) {
      throw Error(
          ErrorCode::InvalidArgument, "--store",
          "holds a password, which every user of the machine can see: put it as "
          "host:port:database:user:password into a file of mode 0600, and name that by PGPASSFILE or by "
          "?passfile=FILE in the URL");
    }
  }
}

}  // namespace cubind
