// Prometheus metrics of one process.
//
// Each component declares its metrics in one metrics.h (a struct of references made
// from a Metrics at start-up), so that names and help texts stand in one place.
#ifndef KMOSAIC_COMMON_METRICS_METRICS_H_
#define KMOSAIC_COMMON_METRICS_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

namespace kmosaic {

// Owns the registry; families live as long as it. Thread-safe.
class Metrics {
 public:
  // Also registers kmosaic_build_info{process,version} = 1.
  explicit Metrics(const std::string& process);

  prometheus::Family<prometheus::Counter>& Counter(const std::string& name,
                                                   const std::string& help);
  prometheus::Family<prometheus::Gauge>& Gauge(const std::string& name, const std::string& help);
  prometheus::Family<prometheus::Histogram>& Histogram(const std::string& name,
                                                       const std::string& help);

  // Text exposition format.
  std::string Serialize() const;

 private:
  std::shared_ptr<prometheus::Registry> registry_;
};

// 1 ms .. 10 min, for histograms of seconds.
const prometheus::Histogram::BucketBoundaries& SecondsBuckets();
// 50 us .. 10 s, for commits and calls on one machine.
const prometheus::Histogram::BucketBoundaries& FineSecondsBuckets();

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_METRICS_METRICS_H_
