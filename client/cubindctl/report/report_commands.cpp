#include "client/cubindctl/report/report_commands.hpp"

#include <algorithm>

#include "base/identifier.hpp"
#include "base/text.hpp"

namespace cubind::ctl {
namespace {

std::string policy_words(const std::string& text) {
  const std::optional<Policy> policy = parse_policy(text);
  return policy ? std::string(policy->warm_l2 ? " --warm-l2" : "") + (policy->graph_launch ? " --graph" : "")
                : "";
}

std::string numerics_words(const std::string& text) {
  const std::optional<Numerics> numerics = parse_numerics(text);
  if (!numerics || numerics->kind == Numerics::Kind::Tolerance) {
    return "";
  }
  return numerics->kind == Numerics::Kind::Reproducible
             ? " --reproducible"
             : " --invariant " + shell_word(numerics->invariant_dim);
}

std::string problem_words(const ExplainedQuestion& question, const std::string& device) {
  return shell_word(question.kernel) + " --problem " + shell_word(to_string(question.problem)) +
         " --device " + shell_word(device);
}

}  // namespace

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_-./+=,:").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) {
    return std::string(text);
  }
  return "'" + replaced(std::string(text), "'", "'\\''") + "'";
}

std::string tune_command(const ExplainedQuestion& question, const std::string& device, bool again) {
  std::string command = "cubindctl tune " + problem_words(question, device) + policy_words(question.policy) +
                        numerics_words(question.numerics);
  if (!question.name_space.empty()) {
    command += " --namespace " + shell_word(question.name_space);
  }
  return again ? command + " --retune" : command;
}

std::string retry_command(const ExplainedQuestion& question, const std::string& device,
                          const Configuration& configuration) {
  return "cubindctl forget " + problem_words(question, device) + " --configuration " +
         shell_word(to_string(configuration)) + " && " + tune_command(question, device, false);
}

}  // namespace cubind::ctl
