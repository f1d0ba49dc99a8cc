#include "server/config_sources.hpp"

#include <toml++/toml.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

/// These say what the program does, not how the daemon is set up.
bool is_setting(const CLI::Option& option) {
  static const std::vector<std::string> kOthers{"help", "version", "config", "check-config", "fsck"};
  return !option.get_lnames().empty() &&
         std::ranges::find(kOthers, option.get_lnames().front()) == kOthers.end();
}

std::string name_of(const CLI::Option& option) { return option.get_lnames().front(); }

std::string value_of(const CLI::Option& option) {
  const bool is_flag = option.get_items_expected_max() == 0;
  return option.count() > 0 ? join(option.results(), ":") : is_flag ? "false" : option.get_default_str();
}

bool is_repeatable(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

void give(CLI::Option& option, const std::vector<std::string>& values, const std::string& where) {
  try {
    for (const std::string& value : values) {
      option.add_result(value);
    }
    option.run_callback();
  } catch (const CLI::Error& error) {
    throw Error(ErrorCode::InvalidArgument, where,
                quoted(join(values, ":")) + " is no value of it: " + error.what());
  }
}

std::string value_in_environment(const CLI::Option& option) {
  const std::string name = environment_name(name_of(option));
  const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
  return value ? value : "";
}

using Sources = std::map<std::string, std::string>;  // by setting

void fill_from_environment(CLI::App& app, Sources& sources) {
  for (CLI::Option* option : app.get_options()) {
    if (!is_setting(*option) || option->count() > 0) {
      continue;
    }
    if (const std::string value = value_in_environment(*option); !value.empty()) {
      const std::string variable = environment_name(name_of(*option));
      give(*option, is_repeatable(*option) ? parts_of(value) : std::vector{value}, variable);
      sources[name_of(*option)] = variable;
    }
  }
}

using FileValues = std::map<std::string, std::vector<std::string>>;

std::string text_of(const toml::node& node) {
  std::ostringstream text;
  text << std::boolalpha;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>) {
      text << value.get();
    } else {
      text << value;
    }
  });
  return text.str();
}

/// Tables give names with a dot, which no setting has.
void add_values(const toml::table& table, const std::string& prefix, FileValues& values) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      add_values(*inner, name + ".", values);
    } else if (const toml::array* array = node.as_array()) {
      std::ranges::transform(*array, std::back_inserter(values[name]), text_of);
    } else {
      values[name] = {text_of(node)};
    }
  }
}

FileValues read_values(const fs::path& file) {
  FileValues values;
  try {
    add_values(toml::parse(read_file(file)), "", values);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::InvalidArgument,
                file.string() + " line " + std::to_string(error.source().begin.line),
                "is not TOML: " + std::string(error.description()) + " (a string stands between quotes)");
  }
  return values;
}

void fill_from_file(CLI::App& app, const fs::path& file, Sources& sources) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (is_setting(*option)) {
      names.push_back(name_of(*option));
    }
  }
  for (const auto& [name, values] : read_values(file)) {
    const std::string where = file.string() + " " + name;
    if (std::ranges::find(names, name) == names.end()) {
      throw Error(ErrorCode::InvalidArgument, where, "is not a setting" + suggestion(name, names));
    }
    if (CLI::Option* option = app.get_option("--" + name); option->count() == 0) {
      give(*option, values, where);
      sources[name] = file.string();
    }
  }
}

}  // namespace

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) {
    if (!part.empty()) {
      parts.push_back(part);
    }
  }
  return parts;
}

std::string environment_name(const std::string& option) {
  if (option == "kernels") {
    return "";
  }
  std::string name = "CUBIND_";
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

fs::path default_config_file() {
  const fs::path folder = user_config_dir();
  const fs::path file = folder / "cubind.toml";
  std::error_code failed;
  return !folder.empty() && fs::exists(file, failed) ? file : fs::path();
}

std::vector<Setting> fill_open_options(CLI::App& app, const fs::path& file) {
  Sources sources;
  for (const CLI::Option* option : app.get_options()) {
    if (is_setting(*option) && option->count() > 0) {
      sources[name_of(*option)] = "flag";
    }
  }
  fill_from_environment(app, sources);
  if (!file.empty()) {
    fill_from_file(app, file, sources);
  }
  std::vector<Setting> settings;
  for (const CLI::Option* option : app.get_options()) {
    if (is_setting(*option)) {
      const auto found = sources.find(name_of(*option));
      settings.push_back(
          {name_of(*option), value_of(*option), found == sources.end() ? "default" : found->second});
    }
  }
  return settings;
}

}  // namespace cubind
