// Files in the form of an OCI image archive, which tools such as skopeo copy to registries and back. It is a
// tar of an OCI layout with one manifest; layers are not compressed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cubind {

struct OciLayer {
  std::string media_type;
  std::string bytes;
  bool operator==(const OciLayer&) const = default;
};

/// The same layers give the same bytes.
std::string print_oci_image(const std::vector<OciLayer>& layers);

/// The layers in order. Throws InvalidArgument or DataLoss at `where` for any fault: the digest and size of
/// each blob must match.
std::vector<OciLayer> read_oci_image(std::string_view bytes, const std::string& where);

}  // namespace cubind
