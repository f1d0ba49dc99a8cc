#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "client/cubindctl/command_line.hpp"
#include "client/cubindctl/completion.hpp"
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

// Those that lead to a command.
std::vector<std::string> words_of(const CommandPath& path) {
  std::vector<std::string> words;
  for (const CommandHelp* command : path) {
    words.push_back(command->name);
  }
  words.erase(words.begin());  // the program's name
  return words;
}

std::vector<std::string> no_kernels(const std::string&) { return {}; }

std::vector<std::string> completed(std::vector<std::string> words, const std::string& current) {
  words.push_back(current);
  std::vector<std::string> found;
  for (const Candidate& candidate : complete(program(), words, no_kernels).candidates) {
    found.push_back(candidate.word);
  }
  return found;
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

TEST_CASE("every command and option is completed") {
  for (const CommandPath& path : every_command(program())) {
    INFO(path_text(path));
    const std::vector<std::string> words = completed(words_of(path), "");
    for (const CommandHelp& below : path.back()->commands) {
      CHECK(std::ranges::count(words, below.name) == 1);
    }
    const std::vector<std::string> options = completed(words_of(path), "-");
    for (const OptionHelp& option : options_of(path)) {
      for (const std::string& name : option.names) {
        INFO(name);
        CHECK(std::ranges::count(options, name) == 1);
      }
    }
  }
}

TEST_CASE("an option that takes a value takes the next word") {
  for (const CommandPath& path : every_command(program())) {
    for (const OptionHelp& option : options_of(path)) {
      for (const std::string& name : option.names) {
        std::vector<std::string> words = words_of(path);
        words.push_back(name);
        INFO(path_text(path) + " " + name);
        CHECK(completed(words, "-").empty() == !option.value.empty());
      }
    }
  }
}

TEST_CASE("the choices of a value are completed") {
  const std::vector<std::string> choices{"serve", "wait", "fail"};
  CHECK(completed({"get", "--on-miss"}, "") == choices);
  CHECK(completed({"get", "--on-miss"}, "w") == std::vector<std::string>{"wait"});
  CHECK(completed({"get"}, "--on-miss=w") == std::vector<std::string>{"--on-miss=wait"});
  CHECK(completed({"completion"}, "b") == std::vector<std::string>{"bash"});
}

TEST_CASE("a word that bash split at its equals sign is completed behind it") {
  CHECK(completed({"get", "--on-miss"}, "=").size() == 3);
  CHECK(completed({"get", "--on-miss", "="}, "w") == std::vector<std::string>{"wait"});
  CHECK(completed({"get", "--problem", "N", "=", "1,T", "=", "f32", "--on-miss"}, "f") ==
        std::vector<std::string>{"fail"});
}

TEST_CASE("files and folders are left to the shell") {
  using Paths = Completion::Paths;
  const auto paths = [](const std::vector<std::string>& words) {
    return complete(program(), words, no_kernels).paths;
  };
  CHECK(paths({"get", "-o", ""}) == Paths::Files);
  CHECK(paths({"get", "--output=fi"}) == Paths::Files);
  CHECK(paths({"table", "diff", "a.json", ""}) == Paths::Files);
  CHECK(paths({"table", "diff", "a.json", "b.json", ""}) == Paths::None);
  CHECK(paths({"import", "a.json", "b.json", ""}) == Paths::Files);
  CHECK(paths({"kernels", "init", "scale", "--dir", ""}) == Paths::Folders);
}

TEST_CASE("kernel names come from the daemon that the command line names") {
  std::string asked = "nobody";
  const KernelNames names = [&](const std::string& address) {
    asked = address;
    return std::vector<std::string>{"rmsnorm_forward", "softmax"};
  };
  CHECK(complete(program(), {"tune", "--kernel"}, names).candidates.empty());
  CHECK(asked == "nobody");
  CHECK(complete(program(), {"--address=there:1", "get", "r"}, names).candidates.at(0).word ==
        "rmsnorm_forward");
  CHECK(asked == "there:1");
}

TEST_CASE("a kernel's name that is more than a word to a shell is not offered") {
  const KernelNames names = [](const std::string&) {
    return std::vector<std::string>{"softmax",        "$(reboot)", "a b",     "x\n:files", ":files",
                                    "--address=evil", "a\tb",      "\x1b[2J", ""};
  };
  const Completion completion = complete(program(), {"get", ""}, names);
  REQUIRE(completion.candidates.size() == 1);
  CHECK(completion.candidates[0].word == "softmax");
}

TEST_CASE("a shell reads a candidate a line and then what it completes itself") {
  const Completion completion{{{"get", "the best"}, {"auto", ""}}, Completion::Paths::Folders};
  CHECK(to_string(completion) == "get\tthe best\nauto\n:folders\n");
}

TEST_CASE("another shell is refused with those that there are") {
  CHECK_THROWS_WITH(completion_script("tcsh"), Catch::Contains("bash, zsh, fish"));
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
