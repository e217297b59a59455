// Between the wire's times and Abseil's.
#ifndef KMOSAIC_AGENT_RUNNER_PROTO_TIME_H_
#define KMOSAIC_AGENT_RUNNER_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

#include "absl/time/time.h"

namespace kmosaic {

inline google::protobuf::Duration ToProtoDuration(absl::Duration duration) {
  google::protobuf::Duration proto;
  absl::Duration rest;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

inline absl::Duration FromProtoDuration(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

inline google::protobuf::Timestamp ToProtoTimestamp(absl::Time time) {
  google::protobuf::Timestamp proto;
  int64_t nanos = absl::ToUnixNanos(time);
  proto.set_seconds(nanos / 1'000'000'000);
  proto.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return proto;
}

inline absl::Time FromProtoTimestamp(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace kmosaic

#endif  // KMOSAIC_AGENT_RUNNER_PROTO_TIME_H_
