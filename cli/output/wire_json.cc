#include "cli/output/wire_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "common/base/text.h"
#include "kernelmosaic/v1/types.pb.h"

namespace kmosaic {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::ordered_json;

ordered_json NumberOrNull(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

// "DeviceKind", "DEVICE_KIND_CUDA" -> "cuda".
ordered_json EnumJson(const EnumDescriptor* type, const EnumValueDescriptor* value) {
  if (value->number() == 0) return nullptr;
  // The prefix has the letters of the type's name and one '_' before each inner capital.
  size_t prefix = type->name().size();
  for (size_t i = 0; i < type->name().size(); ++i) {
    if (absl::ascii_isupper(static_cast<unsigned char>(type->name()[i]))) ++prefix;
  }
  std::string name = value->name().substr(std::min(prefix, value->name().size()));
  if (type != kernelmosaic::v1::Verdict_descriptor()) absl::AsciiStrToLower(&name);
  return name;
}

ordered_json MessageJson(const Message& message) {
  if (message.GetDescriptor() == google::protobuf::Timestamp::descriptor()) {
    const auto& time = static_cast<const google::protobuf::Timestamp&>(message);
    return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ",
                            absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()),
                            absl::UTCTimeZone());
  }
  if (message.GetDescriptor() == google::protobuf::Duration::descriptor()) {
    const auto& duration = static_cast<const google::protobuf::Duration&>(message);
    return static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
  }
  return ToJson(message);
}

// `index` < 0 for a field that is not repeated.
ordered_json ValueJson(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& r = *message.GetReflection();
  bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? r.GetInt32(message, field) : r.GetRepeatedInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return one ? r.GetInt64(message, field) : r.GetRepeatedInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? r.GetUInt32(message, field) : r.GetRepeatedUInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return one ? r.GetUInt64(message, field) : r.GetRepeatedUInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberOrNull(one ? r.GetDouble(message, field)
                              : r.GetRepeatedDouble(message, field, index));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberOrNull(static_cast<double>(one ? r.GetFloat(message, field)
                                                  : r.GetRepeatedFloat(message, field, index)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? r.GetBool(message, field) : r.GetRepeatedBool(message, field, index);
    case FieldDescriptor::CPPTYPE_STRING:
      return ToValidUtf8(one ? r.GetString(message, field)
                             : r.GetRepeatedString(message, field, index));
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumJson(field->enum_type(),
                      one ? r.GetEnum(message, field) : r.GetRepeatedEnum(message, field, index));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(one ? r.GetMessage(message, field)
                             : r.GetRepeatedMessage(message, field, index));
  }
  return nullptr;
}

ordered_json MapJson(const Message& message, const FieldDescriptor* field) {
  const Reflection& r = *message.GetReflection();
  const Descriptor* entry = field->message_type();
  // Sorted, so that the same message prints the same.
  std::map<std::string, ordered_json> sorted;
  for (int i = 0; i < r.FieldSize(message, field); ++i) {
    const Message& pair = r.GetRepeatedMessage(message, field, i);
    ordered_json key = ValueJson(pair, entry->map_key(), -1);
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] =
        ValueJson(pair, entry->map_value(), -1);
  }
  ordered_json object = ordered_json::object();
  for (auto& [key, value] : sorted) object[key] = std::move(value);
  return object;
}

}  // namespace

ordered_json ToJson(const Message& message) {
  const Descriptor* type = message.GetDescriptor();
  const Reflection& r = *message.GetReflection();
  ordered_json object = ordered_json::object();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    ordered_json& value = object[field->name()];
    if (field->is_map()) {
      value = MapJson(message, field);
    } else if (field->is_repeated()) {
      value = ordered_json::array();
      for (int j = 0; j < r.FieldSize(message, field); ++j)
        value.push_back(ValueJson(message, field, j));
    } else if (field->has_presence() && !r.HasField(message, field)) {
      if (field->real_containing_oneof() != nullptr) {
        object.erase(field->name());
      } else {
        value = nullptr;
      }
    } else {
      value = ValueJson(message, field, -1);
    }
  }
  return object;
}

}  // namespace kmosaic
