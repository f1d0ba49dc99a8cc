// The records that can be measured again, each from its own best configurations.
#pragma once

#include <optional>
#include <vector>

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// A record that agents of this daemon have measured alone on the GPU and that would answer its own
/// question today, on a device class that they offer.
struct MeasuredRecord {
  Question question;
  RecordPtr record;
  std::vector<Configuration> best;  // in terms of today's spec: the winner first, then its finalists
  bool stale = false;
};

struct RecordWishes {
  std::string kernel;             // empty: every kernel
  std::vector<Problem> problems;  // canonical; empty: every problem
  std::optional<Digest> device_class;
  bool all = false;  // also those that are not stale
};

/// Of a TuneRequest with `verify`. Throws InvalidArgument for fields that stay empty with it, NotFound for
/// a kernel or label that does not exist.
RecordWishes record_wishes_of(ServiceContext& context, const v1::TuneRequest& request);

/// In the order of the index. Reads the store: not for the job thread.
std::vector<MeasuredRecord> measured_records(ServiceContext& context, const RecordWishes& wishes);

}  // namespace cubind
