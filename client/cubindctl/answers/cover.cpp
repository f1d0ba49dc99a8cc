// cubindctl cover: whether a list of problems is answered by measurements.
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/client.hpp"
#include "client/cubindctl/answers/answer_json.hpp"
#include "client/cubindctl/answers/asked_terms.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/terminal/text_wrap.hpp"
#include "client/cubindctl/tune/asked_shapes.hpp"
#include "client/cubindctl/tune/problem_locations.hpp"
#include "client/cubindctl/tune/progress_bar.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::ctl {
namespace {

// What one problem is answered with.
struct Covered {
  std::string kernel;
  Problem problem;
  std::string device = {};
  std::string match = "missing";  // with nothing that can be launched
  Evidence evidence = Evidence::None;
  bool accepted = false;
  std::string why = {};
};

Match accepted_match(const CoverOptions& options) {
  const auto match = parse_match(options.accept);
  if (!match) {
    throw Error(ErrorCode::InvalidArgument, "--accept",
                quoted(options.accept) + " is neither exact nor departures, as in " +
                    quoted(to_string(all_departures())));
  }
  return *match;
}

struct Acceptable {
  Match match;
  bool shipped = false;
  bool accepts(const Answer& answer) const {
    const bool measured =
        answer.evidence() != Evidence::None && (shipped || answer.evidence() != Evidence::Shipped);
    return measured && answer.match().within(match);
  }
};

Covered ask(Client& client, const Query& query, const Acceptable& acceptable) {
  Covered covered{query.kernel, query.problem};
  try {
    const Answer answer = client.get(query);
    covered.device = answer.reply().device();
    covered.match = to_string(answer.match());
    covered.evidence = answer.evidence();
    covered.accepted = acceptable.accepts(answer);
    covered.why = one_line(answer.reply().why());
    if (covered.why.empty() && covered.evidence == Evidence::Shipped) {
      covered.why = "came with cubind, was not measured by you: --shipped accepts it";
    }
  } catch (const Error& error) {
    // No cubin that this device loads: the other problems may have one.
    if (error.code() != ErrorCode::FailedPrecondition && error.code() != ErrorCode::DeadlineExceeded) {
      throw;
    }
    covered.why = one_line(error.what());
  }
  return covered;
}

std::vector<Covered> ask_all(const CoverOptions& options, const CommonOptions& common) {
  const ShapeList list = asked_shapes({"cover", options.kernel, options.shapes, options.problems});
  const Acceptable acceptable{accepted_match(options), options.shipped};
  Query query = asked_query(options);
  query.device = asked_device(list.front().kernel, options.device, common);
  query.tune = TuneMode::Never;
  Client client({.address = common.address, .deadline = common.deadline(), .cached_answers = 0});
  std::vector<Covered> all;
  for (const KernelShapes& group : list) {
    query.kernel = group.kernel;
    for (const Shape& shape : group.shapes) {
      query.problem = shape.problem;
      with_locations({shape.where}, [&] { all.push_back(ask(client, query, acceptable)); });
    }
  }
  return all;
}

// "38 of 40 problems are covered: 30 exact, 8 bucket".
std::string summary(const std::vector<Covered>& all) {
  std::map<std::string, std::size_t> matches;
  std::size_t covered = 0;
  for (const Covered& one : all) {
    if (one.accepted) {
      ++covered;
      ++matches[one.match];
    }
  }
  std::vector<std::string> counts;
  for (const auto& [match, count] : matches) {
    counts.push_back(std::to_string(count) + " " + match);
  }
  return std::to_string(covered) + " of " + std::to_string(all.size()) + " problems are covered" +
         (counts.empty() ? "" : ": " + join(counts, ", "));
}

void print(const std::vector<Covered>& all) {
  TextTable table({"?KERNEL", "PROBLEM", "COVERED", "MATCH", "??EVIDENCE", "WHY"});
  for (const Covered& one : all) {
    table.add({one.kernel, to_string(one.problem), one.accepted ? "yes" : "no", one.match,
               std::string(to_string(one.evidence)), one.accepted || one.why.empty() ? "-" : one.why});
  }
  const std::string prefix = replay_prefix(all.front().device);
  table.print(std::cout, output_columns(), prefix);
  std::cout << prefix << summary(all) << "\n";
  if (!std::ranges::all_of(all, &Covered::accepted)) {
    std::cout << prefix << "`cubindctl tune` with the same list measures the others\n";
  }
}

void print_as_json(const std::vector<Covered>& all) {
  OutputJson problems = OutputJson::array();
  for (const Covered& one : all) {
    problems.push_back({{"kernel", one.kernel},
                        {"problem", json_of(one.problem)},
                        {"device", one.device},
                        {"covered", one.accepted},
                        {"match", one.match},
                        {"evidence", to_string(one.evidence)},
                        {"why", one.why}});
  }
  print_json({{"covered", std::ranges::count(all, true, &Covered::accepted)}, {"problems", problems}});
}

}  // namespace

ExitCode run(const CoverOptions& options, const CommonOptions& common) {
  const std::vector<Covered> all = ask_all(options, common);
  if (common.json) {
    print_as_json(all);
  } else {
    print(all);
  }
  return std::ranges::all_of(all, &Covered::accepted) ? ExitCode::Ok : ExitCode::Failure;
}

}  // namespace cubind::ctl
