#include "client/cubindctl/terminal/plain_output.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "client/cubindctl/tune/progress.hpp"

namespace cubind::ctl {

TEST_CASE("what passes a plain output moves no cursor and comes in whole characters") {
  std::ostringstream out;
  {
    const PlainOutput plain(out);
    out << "a\x1b[2J \xc3";
    out << '\xa9' << "\n" << std::flush << "rest\x07";
  }
  CHECK(out.str() == "a\\u001b[2J \xc3\xa9\nrest\\u0007");
  out << "\x1b";
  CHECK(out.str().ends_with("\x1b"));
}

TEST_CASE("escape sequences of our own pass around a plain output") {
  std::ostringstream out;
  const PlainOutput plain(out);
  std::ostream terminal(terminal_buffer(out));
  terminal << "\x1b[K";
  CHECK(out.str() == "\x1b[K");
  std::ostringstream bare;
  CHECK(terminal_buffer(bare) == bare.rdbuf());
}

TEST_CASE("a plain output tells when its target fails") {
  std::istringstream not_for_output;
  std::ostream out(not_for_output.rdbuf());
  const PlainOutput plain(out);
  out << "a" << std::flush;
  CHECK(out.bad());
}

TEST_CASE("the name of a job on the progress line moves no cursor") {
  std::ostringstream out;
  Progress progress(out, {[] { return std::size_t{200}; }}, 1);
  v1::TuneEvent event;
  event.mutable_job()->set_id("1");
  event.mutable_job()->set_kernel("k\x1b]0;title\x07");
  event.mutable_job()->set_state(v1::Job::RUNNING);
  event.mutable_job()->set_stage("\x1b[2J");
  progress.event(event);
  event.mutable_job()->set_state(v1::Job::FAILED);
  event.mutable_job()->set_error("\x1b[3J");
  progress.event(event);
  CHECK(out.str().find("\x1b[2J") == std::string::npos);
  CHECK(out.str().find("\x1b[3J") == std::string::npos);
  CHECK(out.str().find("\x1b]0") == std::string::npos);
}

}  // namespace cubind::ctl
