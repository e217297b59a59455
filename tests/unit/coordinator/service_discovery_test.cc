#include "coordinator/http/service_discovery.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace kmosaic {
namespace {

using Json = nlohmann::json;

v1::Worker Worker(const std::string& id, v1::WorkerState state) {
  v1::Worker worker;
  worker.set_id(id);
  worker.set_state(state);
  worker.set_http_endpoint(id + ":9");
  return worker;
}

TEST_CASE("an empty fleet is the coordinator alone") {
  CHECK(Json::parse(ServiceDiscoveryJson("host:1", {}, {})) == Json::parse(R"([
    {"targets": ["host:1"],
     "labels": {"__meta_kmosaic_process": "coordinator", "__meta_kmosaic_id": "coordinator",
                "__meta_kmosaic_version": "0.1.0", "__meta_kmosaic_state": "ready"}}])"));
}

TEST_CASE("workers and runners are listed with their labels") {
  v1::Worker worker = Worker("w1", v1::WORKER_STATE_BUSY);
  worker.set_version("0.1.0");
  worker.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
  (*worker.mutable_labels())["gpu"] = "H200";
  (*worker.mutable_labels())["a-b.c"] = "\xff";
  v1::Runner runner;
  runner.set_id("r1");
  runner.set_http_endpoint("r1:9");
  runner.set_draining(true);
  Json list = Json::parse(ServiceDiscoveryJson("host:1", {worker}, {runner}));
  REQUIRE(list.size() == 3);
  CHECK(list[1] == Json::parse(R"(
    {"targets": ["w1:9"],
     "labels": {"__meta_kmosaic_process": "gpu-worker", "__meta_kmosaic_id": "w1",
                "__meta_kmosaic_version": "0.1.0", "__meta_kmosaic_state": "busy",
                "__meta_kmosaic_device": "cuda", "__meta_kmosaic_label_gpu": "H200",
                "__meta_kmosaic_label_a_b_c": "\ufffd"}})"));
  CHECK(list[2]["targets"] == Json::array({"r1:9"}));
  CHECK(list[2]["labels"]["__meta_kmosaic_process"] == "agent-runner");
  CHECK(list[2]["labels"]["__meta_kmosaic_state"] == "draining");
}

TEST_CASE("draining workers stay, lost ones and those without metrics do not") {
  v1::Worker silent = Worker("silent", v1::WORKER_STATE_READY);
  silent.clear_http_endpoint();
  Json list = Json::parse(ServiceDiscoveryJson("host:1",
                                               {Worker("draining", v1::WORKER_STATE_DRAINING),
                                                Worker("lost", v1::WORKER_STATE_LOST), silent},
                                               {v1::Runner()}));
  REQUIRE(list.size() == 2);
  CHECK(list[1]["labels"]["__meta_kmosaic_id"] == "draining");
}

}  // namespace
}  // namespace kmosaic
