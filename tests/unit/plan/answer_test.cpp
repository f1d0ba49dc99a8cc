#include "plan/answer.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {

TEST_CASE("an answer without departures is exact") {
  CHECK(Match{}.exact());
  CHECK(to_string(Match{}) == "exact");
}

TEST_CASE("matches rank by their worst member and then by count") {
  const Match exact;
  const Match bucket{Departure::Bucket};
  const Match stale{Departure::Stale};
  const Match both{Departure::Bucket, Departure::Stale};
  const Match device{Departure::OtherDevice};
  const Match fallback{Departure::Default};
  CHECK(exact < bucket);
  CHECK(bucket < stale);
  CHECK(stale < both);
  CHECK(both < device);
  CHECK(device < fallback);
  CHECK(Match{Departure::Bucket, Departure::Stale, Departure::OtherRevision} <
        Match{Departure::NearestProblem});
}

TEST_CASE("the order of matches is total") {
  const Match one{Departure::Bucket, Departure::OtherDevice};
  const Match other{Departure::Stale, Departure::OtherDevice};
  CHECK(one < other);
  CHECK(one != other);
}

TEST_CASE("a match is printed mildest first and read back") {
  const Match match{Departure::Stale, Departure::Bucket, Departure::OtherDevice};
  CHECK(to_string(match) == "bucket+stale+other_device");
  CHECK(parse_match("bucket+stale+other_device") == match);
  CHECK(parse_match("exact") == Match{});
  CHECK(!parse_match("bucket+"));
  CHECK(!parse_match(""));
}

TEST_CASE("a caller accepts a match whose every departure it tolerates") {
  const Match match{Departure::Bucket, Departure::Stale};
  CHECK(match.within(all_departures()));
  CHECK(match.within({Departure::Bucket, Departure::Stale, Departure::OtherRevision}));
  CHECK(!match.within({Departure::Bucket}));
  CHECK(Match{}.within({}));
}

TEST_CASE("departures and evidence and outcomes are printed by the words of the table format") {
  CHECK(to_string(Departure::Default) == "default");
  CHECK(parse_departure("default") == Departure::Default);
  CHECK(!parse_departure("predicted"));
  CHECK(!parse_evidence("reported"));
  CHECK(parse_departure("nearest_problem") == Departure::NearestProblem);
  CHECK(to_string(Evidence::Measured) == "measured");
  CHECK(parse_evidence("imported") == Evidence::Imported);
  CHECK(parse_evidence("shipped") == Evidence::Shipped);
  CHECK(to_string(Outcome::OutOfMemory) == "out_of_memory");
  CHECK(parse_outcome("wrong_result") == Outcome::WrongResult);
  CHECK(!parse_outcome("fine"));
}

}  // namespace cubind::test
