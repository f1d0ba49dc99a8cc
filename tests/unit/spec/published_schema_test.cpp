// schemas/kernel_spec.schema.json, which editors use, against the readers, which alone decide.
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/support/malformed.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {
namespace {

class PublishedSchema {
 public:
  PublishedSchema() {
    const valijson::adapters::NlohmannJsonAdapter adapter(source_);
    valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(adapter, schema_);
  }

  bool accepts(const OrderedJson& document) const {
    const Json copy(document);  // named: of a temporary the adapter reads freed memory
    return valijson::Validator().validate(schema_, valijson::adapters::NlohmannJsonAdapter(copy), nullptr);
  }

 private:
  const Json source_ = Json::parse(read_file(source_dir() / "schemas/kernel_spec.schema.json"));
  valijson::Schema schema_;
};

bool is_read(const SpecBuilder& builder) {
  try {
    builder.parse();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Nothing where the text is not even JSON.
std::optional<OrderedJson> document_of(const std::filesystem::path& file) {
  try {
    return parse_json_strict(read_file(file), file.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<OrderedJson::json_pointer> all_pointers(
    const OrderedJson& json, const OrderedJson::json_pointer& at = OrderedJson::json_pointer()) {
  std::vector<OrderedJson::json_pointer> pointers;
  for (const auto& [key, value] : json.items()) {
    const OrderedJson::json_pointer pointer = json.is_array() ? at / std::stoul(key) : at / key;
    pointers.push_back(pointer);
    if (value.is_structured()) {
      std::ranges::copy(all_pointers(value, pointer), std::back_inserter(pointers));
    }
  }
  return pointers;
}

// Numbers and texts are distinct: of 300 that are alike every pair would be refused.
OrderedJson three_hundred_like(const OrderedJson& one) {
  OrderedJson all = OrderedJson::array();
  for (int i = 1; i <= 300; ++i) {
    all.push_back(one.is_number()   ? OrderedJson(i)
                  : one.is_string() ? OrderedJson(one.get<std::string>() + std::to_string(i))
                                    : one);
  }
  return all;
}

// The document with each of its places damaged in each way, one at a time.
std::vector<OrderedJson> damaged(const OrderedJson& json) {
  const std::vector<OrderedJson> values = {nullptr,
                                           true,
                                           -1,
                                           0,
                                           3,
                                           100000,
                                           0.5,
                                           "",
                                           "N",
                                           "no name",
                                           std::string(2000, 'N'),
                                           OrderedJson::array(),
                                           OrderedJson::object(),
                                           OrderedJson::array({"N", "N"})};
  std::vector<OrderedJson> all;
  for (const OrderedJson::json_pointer& pointer : all_pointers(json)) {
    for (const OrderedJson& value : values) {
      all.push_back(json);
      all.back()[pointer] = value;
    }
    const OrderedJson& sound = json.at(pointer);
    if (sound.is_object()) {
      all.push_back(json);
      all.back()[pointer]["no_such_key"] = 1;
    }
    if (sound.is_array() && !sound.empty()) {
      all.push_back(json);
      all.back()[pointer] = three_hundred_like(sound.front());
    }
  }
  return all;
}

}  // namespace

TEST_CASE("what the published schema refuses, the readers refuse") {
  const PublishedSchema schema;
  SpecBuilder builder;
  builder.json["$schema"] = "kernel_spec.schema.json";
  builder.json["description"] = "y = x * alpha";
  builder.json["headers"] = {"../common"};
  builder.json["options"] = OrderedJson::array();
  builder.json["arch_features"] = false;
  builder.json["arguments"]["x"]["shape"] = {"N", "D"};
  builder.json["arguments"]["map"] = OrderedJson::parse(
      R"({"tensor_map": "x", "type": "T", "sizes": ["D", "N"], "strides": ["D * 4"], "box": [4, "VECTOR"],
          "element_strides": [1, 1], "swizzle": "32B", "interleave": "none", "l2_promotion": 0, "fill": "nan"})");
  builder.json["launches"][0]["arguments"].push_back("map");
  builder.json["tolerance"]["f32"]["atol"] = {{"factor", 1e-6}, {"sqrt", "D"}};
  builder.json["tolerance"]["outputs"] = {{"y", {{"bf16", {{"rtol", 1e-2}, {"atol", 0}}}}}};
  REQUIRE(is_read(builder));
  std::size_t refused = 0;
  for (const OrderedJson& json : damaged(builder.json)) {
    if (schema.accepts(json)) {
      continue;
    }
    ++refused;
    builder.json = json;
    if (is_read(builder)) {
      FAIL_CHECK(json.dump());
    }
  }
  CHECK(refused > 500);
}

TEST_CASE("each malformed spec that the published schema refuses is refused by the readers") {
  const PublishedSchema schema;
  std::size_t refused = 0;
  const TempDir folder;
  for (const MalformedFile& file : write_malformed("specs", folder.path())) {
    const auto document = document_of(file.path);
    if (document && !schema.accepts(*document)) {
      ++refused;
      CHECK_THROWS_AS(load_kernel_spec(file.path), Error);
    }
  }
  CHECK(refused > 10);
}

TEST_CASE("each shipped spec passes the published schema and the readers") {
  const PublishedSchema schema;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "variants")) {
    const auto document = entry.path().extension() == ".json" ? document_of(entry.path()) : std::nullopt;
    if (document && document->contains("launches")) {
      INFO(entry.path());
      CHECK(schema.accepts(*document));
      CHECK_NOTHROW(load_kernel_spec(entry.path().string()));
      ++count;
    }
  }
  CHECK(count >= 2);
}

TEST_CASE("the published schema lists the options that the readers allow") {
  SpecBuilder builder;
  builder.json["options"] = {"--no-such-option"};
  const std::string refusal = refusal_of([&] { builder.parse(); });
  const auto allowed = refusal.find("allowed are ");
  REQUIRE(allowed != std::string::npos);
  const Json schema = Json::parse(read_file(source_dir() / "schemas/kernel_spec.schema.json"));
  CHECK_THAT(schema.at(Json::json_pointer("/properties/options/description")).get<std::string>(),
             Catch::Contains("Allowed are " + refusal.substr(allowed + 12) + "."));
}

TEST_CASE("the published schema knows what is reserved so that editors do not mark it") {
  const PublishedSchema schema;
  SpecBuilder builder;
  CHECK(schema.accepts(builder.json));
  builder.json["problem"]["scenarios"] = {{"skewed", OrderedJson::object()}};
  builder.json["launches"][0]["cluster"] = {"2"};
  builder.json["launches"][0]["cooperative"] = true;
  CHECK(schema.accepts(builder.json));
  builder.json["launches"][0]["clusters"] = {"2"};
  CHECK(!schema.accepts(builder.json));
}

}  // namespace cubind::test
