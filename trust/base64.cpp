#include "trust/base64.hpp"

#include <openssl/evp.h>

namespace cubind {

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends it with a zero
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) {
    return std::nullopt;
  }
  for (std::size_t i = text.size(); i > 0 && text[i - 1] == '=' && !bytes.empty(); --i) {
    bytes.pop_back();
  }
  // EVP_DecodeBlock ignores blanks around the text and bits that no byte has.
  return base64(bytes) == text ? std::optional(bytes) : std::nullopt;
}

}  // namespace cubind
