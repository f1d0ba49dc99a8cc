#include "bundle/oci_image.hpp"

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"
#include "bundle/archive.hpp"

namespace cubind {
namespace {

constexpr const char* kLayout = "oci-layout";
constexpr const char* kLayoutText = R"({"imageLayoutVersion":"1.0.0"})";
constexpr const char* kIndex = "index.json";
constexpr const char* kIndexType = "application/vnd.oci.image.index.v1+json";
constexpr const char* kManifestType = "application/vnd.oci.image.manifest.v1+json";
constexpr const char* kConfigType = "application/vnd.cubind.bundle.config.v1+json";
constexpr std::string_view kBlobs = "blobs/sha256/", kDigestKind = "sha256:";

Json descriptor(const std::string& media_type, std::string_view bytes) {
  return {{"mediaType", media_type},
          {"digest", std::string(kDigestKind) + Digest::of(bytes).hex()},
          {"size", bytes.size()}};
}

void add_blob(Members& members, const std::string& bytes) {
  members[std::string(kBlobs) + Digest::of(bytes).hex()] = bytes;
}

class Image {
 public:
  Image(std::string_view bytes, const std::string& where) : where_(where), members_(read_tar(bytes, where)) {}

  std::vector<OciLayer> layers() {
    const OrderedJson index = document(member(kIndex), kIndex);
    const JsonNode manifests = JsonNode(index, where_ + " " + kIndex).at("manifests");
    if (manifests.size() != 1) {
      manifests.fail("lists " + std::to_string(manifests.size()) + " images, a bundle is one");
    }
    const OciLayer manifest = blob(manifests.at(std::size_t{0}));
    const OrderedJson image = document(manifest.bytes, "image");
    std::vector<OciLayer> layers;
    for (const JsonNode& layer : JsonNode(image, where_ + " image").at("layers").elements()) {
      layers.push_back(blob(layer));
    }
    return layers;
  }

 private:
  OrderedJson document(const std::string& text, const std::string& name) const {
    return parse_json_strict(text, where_ + " " + name);
  }

  const std::string& member(const std::string& path) const {
    const auto found = members_.find(path);
    if (found == members_.end()) {
      throw Error(ErrorCode::InvalidArgument, where_, "is not a bundle: it is a tar archive without " + path);
    }
    return found->second;
  }

  OciLayer blob(const JsonNode& descriptor) const {
    const std::string digest = descriptor.at("digest").as_string();
    const auto wanted =
        digest.starts_with(kDigestKind) ? Digest::from_hex(digest.substr(kDigestKind.size())) : std::nullopt;
    if (!wanted) {
      descriptor.at("digest").fail(quoted(digest) + " is not a digest such as sha256:0a1b...");
    }
    const std::string path = std::string(kBlobs) + wanted->hex();
    const std::string& bytes = member(path);
    if (Digest::of(bytes) != *wanted) {
      throw Error(ErrorCode::DataLoss, where_ + " " + path,
                  "is damaged: it does not have the digest of its name");
    }
    return {descriptor.at("mediaType").as_string(), bytes};
  }

  const std::string& where_;
  const Members members_;
};

}  // namespace

std::string print_oci_image(const std::vector<OciLayer>& layers) {
  Members members{{kLayout, kLayoutText}};
  const std::string config = "{}";
  add_blob(members, config);
  Json list = Json::array();
  for (const OciLayer& layer : layers) {
    add_blob(members, layer.bytes);
    list.push_back(descriptor(layer.media_type, layer.bytes));
  }
  const std::string manifest = Json{
      {"schemaVersion", 2},
      {"mediaType", kManifestType},
      {"config", descriptor(kConfigType, config)},
      {"layers", std::move(list)}}.dump();
  add_blob(members, manifest);
  members[kIndex] = Json{{"schemaVersion", 2},
                         {"mediaType", kIndexType},
                         {"manifests", Json::array({descriptor(kManifestType, manifest)})}}
                        .dump();
  return write_tar(members);
}

std::vector<OciLayer> read_oci_image(std::string_view bytes, const std::string& where) {
  return Image(bytes, where).layers();
}

}  // namespace cubind
