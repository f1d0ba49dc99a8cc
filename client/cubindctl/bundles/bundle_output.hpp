#pragma once

#include <string>

#include "bundle/bundle.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

/// One line for people, or a document. `signer`: the key's id, and a name if it is known.
void print_bundle_summary(const Bundle& bundle, const std::string& file, const std::string& signer,
                          const CommonOptions& common);
OutputJson bundle_json(const Bundle& bundle, const std::string& file);
/// "acme 7 until 2027-03-01, signed by KEY: 2 records of 1 kernel, 2 cubins (8.1 KiB)"
std::string bundle_text(const Bundle& bundle, const std::string& signer);

}  // namespace cubind::ctl
