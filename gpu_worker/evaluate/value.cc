#include "gpu_worker/evaluate/value.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr int kMaxDepth = 64;

using nlohmann::json;

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError("value from a role process: " + what);
}

struct Source {
  std::shared_ptr<const std::string> block;  // null: elsewhere
  uint64_t available = 0;                    // bytes
};

absl::StatusOr<Tensor> ParseTensor(const json& node, const Source& source) {
  Tensor tensor;
  if (!node.contains("dtype") || !node["dtype"].is_string())
    return Malformed("tensor has no dtype");
  tensor.dtype_name = node["dtype"].get<std::string>();
  tensor.dtype = ParseDType(tensor.dtype_name);
  if (!node.contains("shape") || !node["shape"].is_array()) return Malformed("tensor has no shape");
  uint64_t elements = 1;
  for (const json& size : node["shape"]) {
    if (!size.is_number_integer() || size.get<int64_t>() < 0) {
      return Malformed("tensor has a size that is not a natural number");
    }
    int64_t dimension = size.get<int64_t>();
    tensor.shape.push_back(dimension);
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(dimension), &elements) ||
        elements > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 16) {
      return Malformed("tensor is too large");
    }
  }
  tensor.elements = static_cast<int64_t>(elements);
  if (node.contains("device") && node["device"].is_string()) {
    tensor.device = node["device"].get<std::string>();
  }
  if (!node.contains("offset") || !node["offset"].is_number_integer() || !node.contains("bytes") ||
      !node["bytes"].is_number_integer()) {
    return Malformed("tensor has no offset or byte count");
  }
  int64_t offset = node["offset"].get<int64_t>();
  int64_t bytes = node["bytes"].get<int64_t>();
  uint64_t available = source.available;
  if (offset < 0 || bytes < 0 || static_cast<uint64_t>(offset) > available ||
      static_cast<uint64_t>(bytes) > available - static_cast<uint64_t>(offset)) {
    return Malformed(absl::StrCat("tensor reaches from byte ", offset, " over ", bytes,
                                  " bytes of a block of ", available));
  }
  if (tensor.dtype.has_value() &&
      static_cast<uint64_t>(bytes) != elements * ItemSize(*tensor.dtype)) {
    return Malformed(absl::StrCat(Describe(tensor), " does not have ", bytes, " bytes"));
  }
  if (tensor.dtype.has_value() && static_cast<uint64_t>(offset) % ItemSize(*tensor.dtype) != 0) {
    return Malformed(absl::StrCat("tensor begins at byte ", offset, ", within an element"));
  }
  tensor.block = source.block;
  tensor.offset = static_cast<size_t>(offset);
  tensor.size_bytes = static_cast<size_t>(bytes);
  return tensor;
}

absl::StatusOr<double> ParseNumber(const json& node) {
  if (node.is_number()) return node.get<double>();
  if (node.is_string()) {
    const std::string& text = node.get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
  }
  return Malformed("float without a number");
}

absl::StatusOr<Value> Parse(const json& node, const Source& source, int depth) {
  if (depth > kMaxDepth) return Malformed("nested deeper than 64 levels");
  if (!node.is_object() || !node.contains("k") || !node["k"].is_string()) {
    return Malformed("node without a kind");
  }
  const std::string& kind = node["k"].get_ref<const std::string&>();
  Value value;
  const json none;
  const json& v = node.contains("v") ? node["v"] : none;
  if (kind == "none") {
    value.kind = Value::Kind::kNone;
  } else if (kind == "tensor") {
    value.kind = Value::Kind::kTensor;
    KMOSAIC_ASSIGN_OR_RETURN(value.tensor, ParseTensor(node, source));
  } else if (kind == "int") {
    if (!v.is_number_integer()) return Malformed("int without a number");
    value.kind = Value::Kind::kInt;
    value.integer = v.get<int64_t>();
  } else if (kind == "float") {
    value.kind = Value::Kind::kFloat;
    KMOSAIC_ASSIGN_OR_RETURN(value.number, ParseNumber(v));
  } else if (kind == "bool") {
    if (!v.is_boolean()) return Malformed("bool without a truth value");
    value.kind = Value::Kind::kBool;
    value.boolean = v.get<bool>();
  } else if (kind == "str" || kind == "dtype") {
    if (!v.is_string()) return Malformed("str without a text");
    value.kind = Value::Kind::kString;
    // As Python prints it, so that torch.float32 is no "float32".
    value.text = absl::StrCat(kind == "dtype" ? "torch." : "", v.get<std::string>());
  } else if (kind == "list" || kind == "tuple" || kind == "dict") {
    if (!node.contains("items") || !node["items"].is_array()) {
      return Malformed(kind + " without items");
    }
    value.kind = kind == "list"    ? Value::Kind::kList
                 : kind == "tuple" ? Value::Kind::kTuple
                                   : Value::Kind::kDict;
    for (const json& item : node["items"]) {
      if (value.kind != Value::Kind::kDict) {
        KMOSAIC_ASSIGN_OR_RETURN(Value child, Parse(item, source, depth + 1));
        value.items.push_back(std::move(child));
        continue;
      }
      if (!item.is_array() || item.size() != 2 || !item[0].is_string()) {
        return Malformed("dict entry that is not a pair of name and value");
      }
      KMOSAIC_ASSIGN_OR_RETURN(Value child, Parse(item[1], source, depth + 1));
      value.entries.emplace_back(item[0].get<std::string>(), std::move(child));
    }
  } else {
    return Malformed("kind '" + kind + "' is not known");
  }
  return value;
}

void Collect(const Value& value, const std::string& path, std::vector<Leaf>* leaves) {
  switch (value.kind) {
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      for (size_t i = 0; i < value.items.size(); ++i) {
        Collect(value.items[i], absl::StrCat(path, "[", i, "]"), leaves);
      }
      return;
    case Value::Kind::kDict:
      for (const auto& [name, child] : value.entries) Collect(child, path + "." + name, leaves);
      return;
    default:
      leaves->push_back({path, &value});
  }
}

}  // namespace

std::string KindName(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kNone:
      return "None";
    case Value::Kind::kTensor:
      return "tensor";
    case Value::Kind::kInt:
      return "int";
    case Value::Kind::kFloat:
      return "float";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kString:
      return "str";
    case Value::Kind::kList:
      return "list";
    case Value::Kind::kTuple:
      return "tuple";
    case Value::Kind::kDict:
      return "dict";
  }
  return "value";
}

absl::StatusOr<Value> ParseValue(const json& node, std::shared_ptr<const std::string> block) {
  uint64_t available = block == nullptr ? 0 : block->size();
  return Parse(node, {std::move(block), available}, 0);
}

absl::StatusOr<Value> ParseValueElsewhere(const json& node, uint64_t max_bytes) {
  return Parse(node, {nullptr, max_bytes}, 0);
}

std::vector<Leaf> Leaves(const Value& value) {
  std::vector<Leaf> leaves;
  Collect(value, "", &leaves);
  return leaves;
}

std::string Describe(const Tensor& tensor) {
  return absl::StrCat(tensor.dtype_name, "[", absl::StrJoin(tensor.shape, ", "), "]");
}

absl::StatusOr<std::shared_ptr<const std::string>> ReadBlock(int fd, uint64_t max_bytes) {
  struct stat stat_buffer = {};
  if (fstat(fd, &stat_buffer) != 0) return ErrnoStatus(errno, "fstat of a block from a role");
  if (!S_ISREG(stat_buffer.st_mode) || stat_buffer.st_size < 0) {
    return Malformed("block is not a memory file");
  }
  uint64_t size = static_cast<uint64_t>(stat_buffer.st_size);
  if (size > max_bytes) {
    return Malformed(absl::StrCat("block of ", size, " bytes exceeds the limit of ", max_bytes));
  }
  // Pages that nobody wrote cost the sender nothing, and would cost memory here.
  constexpr uint64_t kStatBlock = 512;
  constexpr uint64_t kSlack = 1 << 20;
  if (static_cast<uint64_t>(stat_buffer.st_blocks) * kStatBlock + kSlack < size) {
    return Malformed(absl::StrCat("block of ", size, " bytes has holes"));
  }
  auto block = std::make_shared<std::string>(size, '\0');
  size_t done = 0;
  while (done < size) {
    ssize_t count = pread(fd, block->data() + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "read of a block from a role");
    if (count == 0) return Malformed("block became shorter while it was read");
    done += static_cast<size_t>(count);
  }
  return std::shared_ptr<const std::string>(std::move(block));
}

}  // namespace kmosaic
