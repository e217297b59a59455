#include "common/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include "common/base/version.h"

namespace kmosaic {

Metrics::Metrics(const std::string& process) : registry_(std::make_shared<prometheus::Registry>()) {
  Gauge("kmosaic_build_info", "Version of the running program; the value is always 1.")
      .Add({{"process", process}, {"version", kVersion}})
      .Set(1);
}

prometheus::Family<prometheus::Counter>& Metrics::Counter(const std::string& name,
                                                          const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_);
}

prometheus::Family<prometheus::Gauge>& Metrics::Gauge(const std::string& name,
                                                      const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_);
}

prometheus::Family<prometheus::Histogram>& Metrics::Histogram(const std::string& name,
                                                              const std::string& help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry_);
}

std::string Metrics::Serialize() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

const prometheus::Histogram::BucketBoundaries& SecondsBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
  return buckets;
}

const prometheus::Histogram::BucketBoundaries& FineSecondsBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
      0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10};
  return buckets;
}

}  // namespace kmosaic
