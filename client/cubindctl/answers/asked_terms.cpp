#include "client/cubindctl/answers/asked_terms.hpp"

#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/gpu.hpp"

namespace cubind::ctl {

DeviceChoice asked_device(const std::string& kernel, const std::string& label, const CommonOptions& common) {
  if (!label.empty()) {
    return DeviceLabel{label};
  }
  if (has_gpu()) {
    return CurrentGpu{};
  }
  std::vector<std::string> offered, known;
  const Connection connection(resolve_address(common.address));
  const v1::ListDevicesReply devices = connection.list_devices(common.deadline());
  for (const v1::DeviceClass& device : devices.devices()) {
    (device.offered() ? offered : known).push_back(device.label());
  }
  if (offered.size() != 1) {
    connection.require_kernel(kernel, common.deadline());
    known.insert(known.end(), offered.begin(), offered.end());
    throw Error(ErrorCode::InvalidArgument, "device",
                "this machine has no GPU; name one by --device (known: " + join(known, ", ") + ")");
  }
  return DeviceLabel{offered.front()};
}

Query asked_query(const QuestionOptions& options) {
  Query query;
  query.warm_l2 = options.warm_l2;
  query.graph_launch = options.graph_launch;
  query.reproducible = options.reproducible;
  query.invariant_dim = options.invariant_dim;
  query.name_space = options.name_space;
  return query;
}

}  // namespace cubind::ctl
