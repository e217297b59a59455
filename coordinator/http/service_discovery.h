// What Prometheus' HTTP service discovery asks for: the live fleet.
#ifndef KMOSAIC_COORDINATOR_HTTP_SERVICE_DISCOVERY_H_
#define KMOSAIC_COORDINATOR_HTTP_SERVICE_DISCOVERY_H_

#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "kernelmosaic/v1/admin.pb.h"

namespace kmosaic {

// A JSON list of target groups, one for each process that has metrics: the coordinator
// itself at `coordinator` (HOST:PORT), workers that are not lost (draining ones stay until
// they are gone) and runners. Labels: __meta_kmosaic_process ("coordinator", "gpu-worker",
// "agent-runner"), __meta_kmosaic_id, __meta_kmosaic_version, __meta_kmosaic_state, and for
// workers __meta_kmosaic_device and __meta_kmosaic_label_NAME (characters that Prometheus
// does not allow become '_').
std::string ServiceDiscoveryJson(const std::string& coordinator,
                                 const std::vector<v1::Worker>& workers,
                                 const std::vector<v1::Runner>& runners);

}  // namespace kmosaic

#endif  // KMOSAIC_COORDINATOR_HTTP_SERVICE_DISCOVERY_H_
