#include <catch2/catch.hpp>
#include <sstream>

#include "base/error.hpp"
#include "client/cubindctl/command_line.hpp"
#include "client/cubindctl/completion.hpp"
#include "client/cubindctl/completion_words.hpp"
#include "client/cubindctl/man_page.hpp"

namespace cubind::ctl {
namespace {

const CommandHelp& program() {
  static const CommandHelp help = command_help();
  return help;
}

const CommandHelp& command(const CommandHelp& above, const std::string& name) {
  for (const CommandHelp& below : above.commands) {
    if (below.name == name) {
      return below;
    }
  }
  FAIL("there is no command " + name);
  return above;
}

// The lines that have all of the words.
std::size_t lines_with(const std::string& text, const std::vector<std::string>& words) {
  std::size_t count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    count += std::ranges::all_of(
        words, [&](const std::string& word) { return line.find(word) != std::string::npos; });
  }
  return count;
}

// "\fB\-\-output\fR".
std::string in_roff(const std::string& name) {
  std::string text = "\\fB";
  for (const char c : name) {
    text += c == '-' ? std::string("\\-") : std::string(1, c);
  }
  return text + "\\fR";
}

}  // namespace

TEST_CASE("the parser tells its commands with their options and values") {
  const CommandHelp& get = command(program(), "get");
  REQUIRE(get.positionals.size() == 1);
  CHECK(get.positionals[0].names == std::vector<std::string>{"kernel"});
  const auto output = std::ranges::find_if(get.options, [](const OptionHelp& option) {
    return option.names == std::vector<std::string>{"-o", "--output"};
  });
  REQUIRE(output != get.options.end());
  CHECK(output->value == "FILE");
  const CommandHelp& init = command(command(program(), "kernels"), "init");
  CHECK(init.positionals.at(0).required);
}

TEST_CASE("every command and option is in the completion for bash") {
  const std::string script = completion_script(program(), "bash");
  for (const CommandPath& path : every_command(program())) {
    INFO(path_text(path));
    CHECK(lines_with(script, {"'" + path_text(path) + " ')"}) == 1);
    for (const OptionHelp& option : options_of(path)) {
      for (const std::string& name : option.names) {
        INFO(name);
        CHECK((option.value.empty() || lines_with(script, {"'" + path_text(path) + " " + name + "'"}) > 0));
        CHECK(lines_with(script, {"if [[ $current == -* ]]; then words=", name}) > 0);
      }
    }
  }
}

TEST_CASE("every command and option is in the completion for zsh") {
  const std::string script = completion_script(program(), "zsh");
  for (const CommandPath& path : every_command(program())) {
    const std::size_t begin = script.find("_" + path_text(path, "_") + "() {\n");
    REQUIRE(begin != std::string::npos);
    const std::string function = script.substr(begin, script.find("\n}\n", begin) - begin);
    for (const OptionHelp& option : options_of(path)) {
      for (const std::string& name : option.names) {
        INFO(path_text(path) + " " + name);
        CHECK(function.find(name) != std::string::npos);
      }
    }
  }
}

TEST_CASE("every command and option is in the completion for fish") {
  const std::string script = completion_script(program(), "fish");
  for (const CommandPath& path : every_command(program())) {
    for (const OptionHelp& option : options_of(path)) {
      for (const std::string& name : option.names) {
        const std::string flag = name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        INFO(path_text(path) + flag);
        CHECK(lines_with(script, {"__cubindctl_at \\'" + path_text(path) + "\\'", flag}) > 0);
      }
    }
  }
}

TEST_CASE("the choices of a value are completed") {
  CHECK(completion_script(program(), "bash").find("'cubindctl get --on-miss') words='serve wait fail'") !=
        std::string::npos);
  CHECK(completion_script(program(), "zsh").find(":(serve wait fail)") != std::string::npos);
  CHECK(completion_script(program(), "fish").find("-x -a 'serve wait fail'") != std::string::npos);
}

TEST_CASE("another shell is refused with those that there are") {
  CHECK_THROWS_WITH(completion_script(program(), "tcsh"), Catch::Contains("bash, zsh, fish"));
}

TEST_CASE("every command has a page with all of its options and values") {
  for (const CommandPath& path : every_command(program())) {
    INFO(path_text(path));
    const std::string page = man_page(path);
    CHECK(page.starts_with(".TH "));
    CHECK(page.find(".SH NAME\n") != std::string::npos);
    for (const OptionHelp& option : options_of(path)) {
      for (const std::string& name : option.names) {
        INFO(name);
        CHECK(page.find(in_roff(name)) != std::string::npos);
      }
    }
    for (const CommandHelp& below : path.back()->commands) {
      CHECK(page.find("\\-" + below.name + "\\fR(1)") != std::string::npos);
    }
  }
}

TEST_CASE("a page tells the exit codes and where the daemon is looked for") {
  const std::string page = man_page({&program()});
  CHECK(page.find("\\fB130\\fR") != std::string::npos);
  CHECK(page.find("CUBIND_ADDRESS") != std::string::npos);
  CHECK(man_page_file(every_command(program()).front()) == "cubindctl.1");
}

}  // namespace cubind::ctl
