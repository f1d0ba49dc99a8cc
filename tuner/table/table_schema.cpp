#include <algorithm>
#include <array>
#include <charconv>

#include "plan/facts/fact_json.hpp"
#include "schemas/table.schema.hpp"
#include "tuner/table/table_parts.hpp"

namespace cubind {
namespace {

constexpr std::array<const char*, 3> kLists{"devices", "records", "trials"};
constexpr std::size_t kBatch = 256;

// "t.json /records/3/kernel" of a batch that began at the list's element 256 is "t.json /records/259/kernel".
[[noreturn]] void rethrow_from(std::size_t begin, const std::string& prefix, const Error& error) {
  std::string where = error.where();
  std::size_t index = 0;
  if (where.starts_with(prefix)) {
    const char* first = where.data() + prefix.size();
    const auto [last, failed] = std::from_chars(first, where.data() + where.size(), index);
    if (failed == std::errc()) {
      where = prefix + std::to_string(begin + index) +
              where.substr(static_cast<std::size_t>(last - where.data()));
    }
  }
  throw Error(error.code(), where, error.cause());
}

void add_facts(OrderedJson& schema) {
  const auto facts = schema.is_object() ? schema.find("facts") : schema.end();
  if (facts != schema.end() && facts->is_string()) {
    const std::string name = "cubind.v1." + facts->get<std::string>();
    add_schema(schema["properties"],
               *google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name));
    schema.erase("facts");
  }
  for (OrderedJson& part : schema) {
    if (part.is_structured()) {
      add_facts(part);
    }
  }
}

}  // namespace

const JsonSchema& table_schema() {
  static const JsonSchema schema = [] {
    auto text = OrderedJson::parse(kTableSchema);
    add_facts(text);
    return JsonSchema(text.dump(), "schemas/table.schema.json");
  }();
  return schema;
}

void validate_table(const OrderedJson& document, const std::string& file, const Interrupt& interrupt) {
  OrderedJson frame = document.is_object() ? OrderedJson::object() : OrderedJson();
  for (const auto& [key, value] : document.items()) {
    const bool is_list = value.is_array() && std::ranges::find(kLists, key) != kLists.end();
    frame[key] = is_list ? OrderedJson::array() : value;
  }
  table_schema().validate(frame, file);
  for (const char* list : kLists) {
    const std::size_t size = document.contains(list) ? document.at(list).size() : 0;
    for (std::size_t begin = 0; begin < size; begin += kBatch) {
      ask(interrupt);
      OrderedJson batch = frame;
      const auto first = document.at(list).begin() + static_cast<std::ptrdiff_t>(begin);
      batch[list] = OrderedJson(
          OrderedJson::array_t(first, first + static_cast<std::ptrdiff_t>(std::min(kBatch, size - begin))));
      try {
        table_schema().validate(batch, file);
      } catch (const Error& error) {
        rethrow_from(begin, file + " /" + list + "/", error);
      }
    }
  }
}

}  // namespace cubind
