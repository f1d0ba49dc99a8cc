#include "base/json.hpp"

#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

// An input iterator that leaves its position where the SAX handler can see it: nlohmann's lexer tells its
// position only with syntax errors, and a duplicate key is not one.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *position_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** position_;
};

std::string line_and_column(std::string_view text, std::size_t offset) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {  // a UTF-8 sequence is one column
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// nlohmann's messages begin with "[json.exception.parse_error.101] parse error at line 1, column 2: ".
std::string plain_message(std::string_view what) {
  if (const auto bracket = what.find("] "); what.starts_with('[') && bracket != std::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  if (const auto colon = what.find(": ");
      what.starts_with("parse error") && colon != std::string_view::npos) {
    what.remove_prefix(colon + 2);
  }
  return std::string(what);
}

// Builds the document and refuses what the header names. The containers of the open path stay where they are
// while they are open: only the innermost one grows.
class StrictHandler : public nlohmann::json_sax<OrderedJson> {
 public:
  StrictHandler(std::string_view text, std::string_view file, const JsonLimits& limits,
                const char* const* position)
      : text_(text), file_(file), limits_(limits), position_(position) {}

  OrderedJson take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*elements*/) override { return open(OrderedJson::object()); }
  bool start_array(std::size_t /*elements*/) override { return open(OrderedJson::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    if (level.keys.size() == limits_.max_members) {
      levels_.pop_back();  // the place of the object itself
      fail(pointer(), "an object of more than " + std::to_string(limits_.max_members) + " members");
    }
    level.key = name;
    if (!level.keys.insert(name).second) {
      const auto offset = static_cast<std::size_t>(*position_ - text_.data()) - name_bytes(name);
      fail(pointer(), "duplicate key (" + line_and_column(text_, offset) + ")");
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& exception) override {
    const std::size_t offset = position == 0 ? 0 : position - 1;
    throw Error(ErrorCode::InvalidArgument, std::string(file_) + " " + line_and_column(text_, offset),
                plain_message(exception.what()));
  }

 private:
  struct Level {
    OrderedJson* container;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  // The key with its quotes, as the text usually has it. Escapes make it longer; the column then points into
  // it instead of to its start.
  static std::size_t name_bytes(const string_t& name) { return name.size() + 2; }

  template <typename Value>
  bool put(Value&& value) {
    insert(OrderedJson(std::forward<Value>(value)));
    return true;
  }

  OrderedJson* insert(OrderedJson value) {
    constexpr std::size_t kBetweenAsking = 4096;
    if (++inserted_ % kBetweenAsking == 0) {
      ask(limits_.interrupt);
    }
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.container->is_array()) {
      auto& array = level.container->get_ref<OrderedJson::array_t&>();
      return &array.emplace_back(std::move(value));
    }
    // Not by operator[]: it would search all members, though the set of keys has already decided.
    auto& members = level.container->get_ref<OrderedJson::object_t&>();
    return &members.emplace_back(level.key, std::move(value)).second;
  }

  bool open(OrderedJson container) {
    if (levels_.size() >= limits_.max_depth) {
      const auto offset = static_cast<std::size_t>(*position_ - text_.data()) - 1;
      throw Error(ErrorCode::InvalidArgument, std::string(file_) + " " + line_and_column(text_, offset),
                  "nested deeper than " + std::to_string(limits_.max_depth) + " levels");
    }
    OrderedJson* placed = insert(std::move(container));
    levels_.push_back({placed, {}, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string pointer() const {
    std::string result;
    for (const Level& level : levels_) {
      result += '/';
      // The innermost container that is not yet complete holds the place as its last element.
      result += level.container->is_array() ? std::to_string(level.container->size() - 1)
                                            : escape_pointer_step(level.key);
    }
    return result;
  }

  [[noreturn]] void fail(const std::string& pointer, std::string cause) const {
    const std::string where = pointer.empty() ? std::string(file_) : std::string(file_) + " " + pointer;
    throw Error(ErrorCode::InvalidArgument, where, std::move(cause));
  }

  std::string_view text_;
  std::string_view file_;
  const JsonLimits& limits_;
  const char* const* position_;
  OrderedJson root_;
  std::vector<Level> levels_;
  std::size_t inserted_ = 0;
};

}  // namespace

OrderedJson parse_json_strict(std::string_view text, std::string_view file_name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw Error(ErrorCode::ResourceExhausted, std::string(file_name),
                std::to_string(text.size()) + " bytes of JSON, at most " + std::to_string(limits.max_bytes) +
                    " are taken");
  }
  const char* position = text.data();
  StrictHandler handler(text, file_name, limits, &position);
  const bool parsed =
      OrderedJson::sax_parse(CountingIterator(text.data(), &position),
                             CountingIterator(text.data() + text.size(), &position), &handler);
  if (!parsed) {
    throw Error(ErrorCode::Internal, std::string(file_name), "the JSON parser stopped without an error");
  }
  return handler.take();
}

}  // namespace cubind
