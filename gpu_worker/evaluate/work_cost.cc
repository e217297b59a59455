#include "gpu_worker/evaluate/work_cost.h"

namespace kmosaic {

namespace v1 = kernelmosaic::v1;

double WorkCost(const v1::WorkReport& work) {
  auto number = [](uint64_t count) { return static_cast<double>(count); };
  return number(work.global_load_bytes()) + number(work.global_store_bytes()) +
         number(work.shared_bytes()) / 8 + 2 * number(work.threads()) +
         4 * number(work.barriers()) + 2 * number(work.warp_operations()) +
         32 * number(work.atomics()) + 1e4 * number(work.launches());
}

v1::WorkReport ParseWork(const nlohmann::json& work) {
  auto count = [&](const char* key) -> uint64_t {
    if (!work.is_object()) return 0;
    auto found = work.find(key);
    if (found == work.end() || !found->is_number_integer()) return 0;
    return found->is_number_unsigned() || found->get<int64_t>() >= 0 ? found->get<uint64_t>() : 0;
  };
  v1::WorkReport report;
  report.set_launches(count("launches"));
  report.set_threads(count("threads"));
  report.set_global_load_bytes(count("global_load_bytes"));
  report.set_global_store_bytes(count("global_store_bytes"));
  report.set_shared_bytes(count("shared_bytes"));
  report.set_barriers(count("barriers"));
  report.set_warp_operations(count("warp_operations"));
  report.set_atomics(count("atomics"));
  report.set_cost(WorkCost(report));
  return report;
}

}  // namespace kmosaic
