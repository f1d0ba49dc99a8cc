#include "client/cubindctl/terminal/completion.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch.hpp>

#include "client/cubindctl/subcommands.hpp"

namespace cubind::ctl {
namespace {

using Words = std::vector<std::string>;

/// The parser with every command, and the options of cubindctl itself that tests need.
struct Program {
  CLI::App app{"", "cubindctl"};
  CommandLine line;

  Program() {
    app.add_option("--address", line.common.address)->type_name("ADDRESS");
    app.add_flag("--json", line.common.json);
    add_subcommands(app, line);
  }
};

Words completed(const std::string& line) {
  const Program program;
  return complete(program.app, "cubindctl " + line, [](const std::string&) { return Words{}; });
}

void check_below(const CLI::App& root, const CLI::App& command, const std::string& line) {
  INFO(line);
  const auto below = command.get_subcommands([](const CLI::App*) { return true; });
  const auto offered = [&](const std::string& end) {
    return complete(root, line + end, [](const std::string&) { return Words{}; });
  };
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      CHECK(std::ranges::count(offered("-"), "--" + name) > 0);
      CHECK(offered("--" + name + " -").empty() == (option->get_items_expected_max() > 0));
    }
  }
  CHECK(std::ranges::count(offered("--j"), "--json") == 1);
  for (const CLI::App* one : below) {
    CHECK(std::ranges::count(offered(""), one->get_name()) == 1);
    check_below(root, *one, line + one->get_name() + " ");
  }
}

}  // namespace

TEST_CASE("every command and option is completed and an option that takes a value takes the next word") {
  const Program program;
  check_below(program.app, program.app, "cubindctl ");
}

TEST_CASE("the choices of a value are completed") {
  CHECK(completed("get --on-miss ") == Words{"serve", "wait", "fail"});
  CHECK(completed("get --problem N=1,T=f32 --on-miss w") == Words{"wait"});
  CHECK(completed("completion b") == Words{"bash"});
  CHECK(completed("kernels ") == Words{"check", "init", "schema"});
}

TEST_CASE("files and values without choices are left to the shell") {
  for (const char* line : {"get -o ", "table diff a.json ", "get k --problem ", "get --on-miss=w"}) {
    INFO(line);
    CHECK(completed(line).empty());
  }
}

TEST_CASE("kernel names come from the daemon that the command line names") {
  const Program program;
  std::string asked = "nobody";
  const KernelNames names = [&](const std::string& address) {
    asked = address;
    return Words{"rmsnorm_forward", "softmax"};
  };
  CHECK(complete(program.app, "cubindctl tune --ke", names).empty());
  CHECK(asked == "nobody");
  CHECK(complete(program.app, "cubindctl --address there:1 get r", names) == Words{"rmsnorm_forward"});
  CHECK(asked == "there:1");
  CHECK(complete(program.app, "cubindctl explain s", names) == Words{"softmax"});
}

}  // namespace cubind::ctl
