// What a role process handed over: nested Python values whose tensors lie in one block
// of bytes. Everything in it comes from an untrusted process, so it is checked while it
// is read and copied into memory of our own.
#ifndef KMOSAIC_GPU_WORKER_EVALUATE_VALUE_H_
#define KMOSAIC_GPU_WORKER_EVALUATE_VALUE_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/evaluate/dtype.h"

namespace kmosaic {

// C-contiguous. Shares the block's ownership; cheap to copy, immutable.
struct Tensor {
  std::string dtype_name;
  // Nothing when `dtype_name` is one that is not compared here.
  std::optional<DType> dtype;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  // Where the tensor lived ("cuda:0", "cpu"); empty when the process did not say.
  std::string device;
  // Null when the bytes are elsewhere.
  std::shared_ptr<const std::string> block;
  size_t offset = 0;
  size_t size_bytes = 0;

  std::string_view bytes() const {
    return block == nullptr ? std::string_view()
                            : std::string_view(*block).substr(offset, size_bytes);
  }
};

struct Value {
  enum class Kind { kNone, kTensor, kInt, kFloat, kBool, kString, kList, kTuple, kDict };
  Kind kind = Kind::kNone;
  Tensor tensor;
  int64_t integer = 0;
  double number = 0;
  bool boolean = false;
  std::string text;
  std::vector<Value> items;
  std::vector<std::pair<std::string, Value>> entries;
};

// "tensor", "list", ... for messages.
std::string KindName(Value::Kind kind);

// `block` holds the bytes that the tensors of `node` point into. INVALID_ARGUMENT names
// the first thing that is not as agreed (unknown kind, negative size, bytes outside the
// block, nesting deeper than 64).
absl::StatusOr<Value> ParseValue(const nlohmann::json& node,
                                 std::shared_ptr<const std::string> block);

// The same of a block of at most `max_bytes` that is not in our memory: tensors without bytes.
absl::StatusOr<Value> ParseValueElsewhere(const nlohmann::json& node, uint64_t max_bytes);

// One leaf (anything but list, tuple and dict) and the way to it: "[0].weight".
struct Leaf {
  std::string path;
  const Value* value = nullptr;
};

// In order; a bare leaf has the path "". Pointers live as long as `value`.
std::vector<Leaf> Leaves(const Value& value);

// "float32[16, 128]".
std::string Describe(const Tensor& tensor);

// Reads `size` bytes from the start of a file or memfd into own memory (never a
// mapping: the other side could change or shrink it). INVALID_ARGUMENT when it is
// shorter or larger than `max_bytes`.
absl::StatusOr<std::shared_ptr<const std::string>> ReadBlock(int fd, uint64_t max_bytes);

}  // namespace kmosaic

#endif  // KMOSAIC_GPU_WORKER_EVALUATE_VALUE_H_
