#include "server/config_sources.hpp"

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

/// As CLI11 reads it like TOML: without comments, whose sign it finds in strings too, and each array in one
/// line. Throws where a string or an array has no end.
std::string plain_lines(std::string_view text, const std::string& file) {
  std::string plain;
  std::size_t line = 1, open_arrays = 0;
  char quote = '\0';
  bool is_comment = false;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, file + " line " + std::to_string(line), why);
  };
  for (const char c : text) {
    if (c == '\n') {
      if (quote != '\0') {
        refuse("a string has no end: write it between quotes in one line");
      }
      is_comment = false;
      plain += open_arrays > 0 ? ' ' : c;
      ++line;
    } else if (!is_comment && quote == '\0' && c == '#') {
      is_comment = true;
    } else if (!is_comment) {
      if (quote == '\0' && (c == '[' || c == ']')) {
        open_arrays = c == '[' ? open_arrays + 1 : open_arrays - std::min<std::size_t>(open_arrays, 1);
      } else if (c == quote || (quote == '\0' && (c == '"' || c == '\''))) {
        quote = quote == '\0' ? c : '\0';
      }
      plain += c;
    }
  }
  if (quote != '\0' || open_arrays > 0) {
    refuse("a string or an array has no end");
  }
  return plain;
}

FileValues read_values(const fs::path& file) {
  std::istringstream text(plain_lines(read_file(file), file.string()));
  CLI::ConfigTOML toml;
  toml.comment('\0');
  FileValues values;
  try {
    for (const CLI::ConfigItem& item : toml.from_config(text)) {
      const bool is_section_mark = item.name == "++" || item.name == "--";
      if (!is_section_mark && !values.emplace(item.fullname(), item.inputs).second) {
        throw Error(ErrorCode::InvalidArgument, file.string() + " " + item.fullname(), "is there twice");
      }
    }
  } catch (const CLI::Error& error) {
    throw Error(ErrorCode::InvalidArgument, file.string(), std::string("is not TOML: ") + error.what());
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
