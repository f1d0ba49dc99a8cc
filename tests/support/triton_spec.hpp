// A small valid spec of a Triton kernel with its texts, to be changed by a test before it is parsed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::test {

inline OrderedJson triton_configuration(std::int64_t index, const std::string& ttir, int warps,
                                        std::int64_t blocks) {
  return {{"index", index},
          {"ttir", Digest::of(ttir).hex()},
          {"options", {{"num_warps", warps}, {"num_stages", 3}}},
          {"grid", {blocks, 1, 1}}};
}

/// "rows": y = x for N elements; four configurations of two texts, the third of which Triton refused.
struct TritonSpec {
  TritonSpec() {
    json = {{"name", ""},
            {"language", "triton"},
            {"triton",
             {{"version", "3.6.0"},
              {"ptxas", "12.9"},
              {"architecture", "sm_90"},
              {"entry", "rows"},
              {"key", OrderedJson::parse(R"([["N", 4096], ["dtype", "fp32"]])")},
              {"trailing_pointers", 2}}},
            {"problem", {{"dims", {{"N", "elements"}}}}},
            {"configurations",
             {triton_configuration(0, "a", 4, 32), triton_configuration(1, "b", 8, 16),
              triton_configuration(3, "a", 8, 32), triton_configuration(4, "b", 8, 32)}},
            {"arguments",
             {{"x", {{"buffer", "f32"}, {"extent", 4096}, {"role", "in"}}},
              {"y", {{"buffer", "f32"}, {"extent", 4096}, {"role", "out"}}},
              {"n", {{"scalar", "i32"}, {"expr", 4096}}}}},
            {"tolerance", {{"f32", {{"rtol", 0}, {"atol", 0}}}}}};
  }
  std::string text() const { return json.dump(); }
  /// The name that the reader asks for.
  std::string right_name() const {
    try {
      parse_kernel_spec({"rows.json", text(), files()});
    } catch (const Error& error) {
      const std::string cause = error.cause();
      return cause.substr(9, cause.find('"', 9) - 9);
    }
    return json["name"];
  }
  std::shared_ptr<const KernelSpec> parse() {
    if (json["name"] == "") {
      json["name"] = "x";
      json["name"] = right_name();
    }
    return parse_kernel_spec({"rows.json", text(), files()});
  }
  std::vector<SourceFile> files() const {
    std::vector<SourceFile> all = data;
    for (const std::string& ttir : texts) {
      all.push_back({Digest::of(ttir).hex() + ".ttir", ttir});
    }
    return all;
  }
  OrderedJson json;
  std::vector<std::string> texts{"a", "b"};
  std::vector<SourceFile> data;  // files that fills name
};

/// Has x be 4096 integers in a file, given as their bytes.
inline void give_integers(TritonSpec& spec, const std::string& bytes, const std::string& type = "<i4") {
  const std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" +
                             std::to_string(bytes.size() / 4) + ",), }";
  const std::string begin("\x93NUMPY\x01\x00", 8);
  spec.json["arguments"]["x"] = {
      {"buffer", "i32"}, {"extent", 4096}, {"role", "in"}, {"fill", {{"npy", "x.npy"}}}};
  spec.data = {{"x.npy", begin + static_cast<char>(header.size()) + '\0' + header + bytes}};
}

}  // namespace cubind::test
