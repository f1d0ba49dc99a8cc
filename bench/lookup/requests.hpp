// A file of requests: each as its length (u32, little-endian) and its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace cubind::bench {

inline void append_request(std::string& file, const std::string& request) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    file += static_cast<char>(request.size() >> shift & 0xff);
  }
  file += request;
}

inline std::vector<std::string> read_requests(const std::string& path) {
  const std::string file = read_file(path);
  std::vector<std::string> requests;
  for (std::size_t at = 0; at + 4 <= file.size();) {
    std::uint32_t size = 0;
    for (std::size_t byte = 4; byte-- > 0;) {
      size = size << 8 | static_cast<unsigned char>(file[at + byte]);
    }
    requests.push_back(file.substr(at + 4, size));
    at += 4 + size;
  }
  return requests;
}

}  // namespace cubind::bench
