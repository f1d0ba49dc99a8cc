#include "tuner/worker/compile_log.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace cubind::worker {
namespace {

// "ptxas info    : TEXT" and "ptxas         .     TEXT".
std::optional<std::string_view> ptxas_statement(std::string_view line) {
  if (line.starts_with("ptxas info")) {
    const std::size_t colon = line.find(':');
    return colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  }
  if (line.starts_with("ptxas ") && line.find_first_not_of(' ', 5) == line.find('.')) {
    return line.substr(line.find('.') + 1);
  }
  return std::nullopt;
}

std::string_view quoted_part(std::string_view text) {
  const std::size_t open = text.find('\'');
  const std::size_t close = open == std::string_view::npos ? open : text.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view{} : text.substr(open + 1, close - open - 1);
}

// The number before `unit`: 32 in "Used 32 registers".
std::uint32_t number_before(std::string_view text, std::string_view unit) {
  const std::size_t at = text.find(unit);
  if (at == std::string_view::npos) {
    return 0;
  }
  std::size_t begin = at;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) {
    --begin;
  }
  std::uint32_t value = 0;
  std::from_chars(text.data() + begin, text.data() + at, value);
  return value;
}

// Follows ptxas from "Compiling entry function" through its properties to "Used ... registers".
class ResourceReader {
 public:
  explicit ResourceReader(CompileLog& log) : log_(log) {}

  void read(std::string_view statement) {
    if (statement.find("Compiling entry function") != std::string_view::npos) {
      kernel_ = std::string(quoted_part(statement));
      subject_ = kernel_;
      log_.kernels[kernel_];
    } else if (const std::size_t at = statement.find(kProperties); at != std::string_view::npos) {
      subject_ = std::string(statement.substr(at + kProperties.size()));
    } else if (subject_ != kernel_ || kernel_.empty()) {
      return;  // of a function that is not a kernel
    } else if (statement.find(" bytes stack frame") != std::string_view::npos) {
      read_frame(statement, log_.kernels[kernel_]);
    } else if (statement.find(" registers") != std::string_view::npos) {
      read_use(statement, log_.kernels[kernel_]);
    }
  }

 private:
  static constexpr std::string_view kProperties = "Function properties for ";

  static void read_frame(std::string_view statement, KernelResources& kernel) {
    kernel.local_bytes = number_before(statement, " bytes stack frame");
    kernel.spill_store_bytes = number_before(statement, " bytes spill stores");
    kernel.spill_load_bytes = number_before(statement, " bytes spill loads");
  }

  static void read_use(std::string_view statement, KernelResources& kernel) {
    kernel.registers = number_before(statement, " registers");
    kernel.static_shared_bytes = number_before(statement, " bytes smem");
    kernel.local_bytes =
        std::max(kernel.local_bytes, number_before(statement, " bytes cumulative stack size"));
  }

  CompileLog& log_;
  std::string kernel_;
  std::string subject_;
};

}  // namespace

CompileLog parse_compile_log(std::string_view log) {
  CompileLog result;
  ResourceReader reader(result);
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (const auto statement = ptxas_statement(line)) {
      reader.read(*statement);
    } else {
      result.messages.append(line).append("\n");
    }
  }
  if (result.messages.find_first_not_of(" \n\r\t") == std::string::npos) {
    result.messages.clear();
  }
  return result;
}

std::string redefined_macro(std::string_view messages, const std::vector<std::string>& defines) {
  for (const std::string& define : defines) {
    const std::string name = define.substr(0, define.find('='));
    if (messages.find("incompatible redefinition of macro \"" + name + "\"") != std::string_view::npos) {
      return define;
    }
  }
  return "";
}

}  // namespace cubind::worker
