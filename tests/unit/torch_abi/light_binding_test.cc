// An extension written against the light torch headers, called through the C interface with a
// harness made of a few lines.
#include <kmosaic_torch/dispatch.h>
#include <torch/extension.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

// ---- the extension
torch::Tensor same(const torch::Tensor& x) { return x; }
std::string describe(torch::Tensor x, bool flag, int64_t n, double scale, std::string text,
                     std::optional<torch::Tensor> extra, std::vector<int64_t> sizes) {
  return c10::str(x.dim(), flag, n, "/", scale, text, extra.has_value(), sizes.size());
}
int64_t add(int a, int b) { return a + b; }
double half_of(double x) { return x / 2; }
std::tuple<int, std::vector<double>> several(std::tuple<int, int> pair) {
  return {std::get<0>(pair), {1.5, double(std::get<1>(pair))}};
}
torch::Tensor nothing() { return torch::Tensor(); }
void fails(int kind) {
  TORCH_CHECK(kind != 0, "kind is ", kind);
  if (kind == 1) throw std::out_of_range("out of range");
  if (kind == 2) throw std::invalid_argument("invalid");
  throw 5;
}
float first_as_float(torch::Tensor x) { return x.data_ptr<float>()[0]; }
std::string dispatched(torch::Tensor x) {
  return AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "dispatched", [&] {
    return std::string(sizeof(scalar_t) == 2 ? "half" : sizeof(scalar_t) == 4 ? "float" : "double");
  });
}
torch::Tensor operations(torch::Tensor x) {
  auto y = torch::empty({2, 3}, x.options().dtype(torch::kFloat16));
  return (x + y).sum({0, 1}, true).view({-1});
}
int64_t last_of(torch::IntArrayRef list) { return list.empty() ? -1 : list.back(); }

template <class A, class B>
concept CanChoose = requires(bool first, const A& a, const B& b) { first ? a : b; };
template <class A, class B>
concept CanCompare = requires(const A& a, const B& b) {
  a > b;
  a == b;
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "test extension";
  m.def("same", torch::wrap_pybind_function(same), "same");
  m.def("describe", &describe, py::arg("x"), py::arg("flag") = false, py::arg("n") = 3,
        py::arg("scale") = 0.5, py::arg("text") = "t", py::arg("extra") = py::none(),
        py::arg("sizes") = std::vector<int64_t>{1, 2});
  m.def("add", &add);
  m.def("half_of", &half_of);
  m.def("several", &several);
  m.def("nothing", &nothing);
  m.def("fails", &fails);
  m.def("first_as_float", &first_as_float);
  m.def("dispatched", &dispatched);
  m.def("operations", &operations);
  m.def("last_of", &last_of);
  m.def("overloaded", [](int) { return std::string("int"); });
  m.def(
      "overloaded", [](const std::string&) { return std::string("text"); }, "two of them");
}

namespace kmosaic {
namespace {

std::set<std::uint64_t>& Held() {
  static std::set<std::uint64_t> held;
  return held;
}
std::vector<std::string>& Calls() {
  static std::vector<std::string> calls;
  return calls;
}

KmTensor Describe(std::uint64_t id, std::vector<std::int64_t> sizes, at::ScalarType type,
                  void* data = nullptr) {
  KmTensor tensor{};
  tensor.id = id;
  tensor.data = data;
  tensor.dtype = static_cast<std::int32_t>(type);
  tensor.device_type = 1;
  tensor.dimensions = static_cast<std::int64_t>(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    tensor.sizes[d] = sizes[d];
    tensor.strides[d] = stride;
    stride *= sizes[d];
  }
  Held().insert(id);
  return tensor;
}

// Every operation gives a fresh 2x3 tensor; its name and arguments are noted.
std::int32_t FakeCall(const char* name, const KmValue* arguments, std::int64_t count,
                      KmValue* result) {
  std::string call = name;
  for (std::int64_t i = 0; i < count; ++i) {
    const KmValue& argument = arguments[i];
    call += i == 0 ? "(" : ",";
    if (argument.kind == KM_KEYWORD) {
      call += std::string(static_cast<const char*>(argument.data)) + "=";
    } else {
      call += std::to_string(argument.kind) + ":" + std::to_string(argument.integer);
    }
  }
  Calls().push_back(call);
  if (std::string(name) == "view") {
    static const std::string text = "shape '[-1]' is invalid";
    *result = {KM_STRING, 0, 0, 0, text.c_str(), static_cast<std::int64_t>(text.size())};
    return KM_PYTHON_ERROR;
  }
  static KmTensor tensor;
  static std::uint64_t next = 1000;
  tensor = Describe(next++, {2, 3}, at::kFloat);
  *result = {KM_TENSOR, 0, 0, 0, &tensor, 0};
  return KM_OK;
}
void FakeRelease(std::uint64_t id) { Held().erase(id); }
void* FakeStream(std::int32_t) { return nullptr; }

const KmModule& TheModule() {
  static const KmHost host = {KM_TORCH_ABI_VERSION, 0, FakeCall, FakeRelease, FakeStream};
  const char* error = nullptr;
  const KmModule* module = kmosaic_torch_open(&host, &error);
  REQUIRE(module != nullptr);
  return *module;
}

const KmFunction& Function(const std::string& name) {
  const KmModule& module = TheModule();
  for (std::int64_t i = 0; i < module.function_count; ++i) {
    if (name == module.functions[i].name) return module.functions[i];
  }
  FAIL("no function " << name);
  return module.functions[0];
}

KmValue Int(std::int64_t value) { return {KM_INT, 0, value, 0, nullptr, 0}; }
KmValue Float(double value) { return {KM_FLOAT, 0, 0, value, nullptr, 0}; }
KmValue Bool(bool value) { return {KM_BOOL, 0, value ? 1 : 0, 0, nullptr, 0}; }
KmValue None() { return {KM_NONE, 0, 0, 0, nullptr, 0}; }
KmValue Text(const char* text) {
  return {KM_STRING, 0, 0, 0, text, static_cast<std::int64_t>(std::string(text).size())};
}
KmValue Keyword(const char* name) {
  KmValue value = Text(name);
  value.kind = KM_KEYWORD;
  return value;
}
KmValue TensorValue(const KmTensor& tensor) { return {KM_TENSOR, 0, 0, 0, &tensor, 0}; }
KmValue List(const std::vector<KmValue>& items, std::int32_t kind = KM_LIST) {
  return {kind, 0, 0, 0, items.data(), static_cast<std::int64_t>(items.size())};
}

struct Outcome {
  std::int32_t status;
  KmValue value;
  std::string text;
};

Outcome Invoke(const std::string& name, const std::vector<KmValue>& arguments) {
  Outcome outcome{};
  outcome.status =
      kmosaic_torch_invoke(Function(name).self, arguments.data(),
                           static_cast<std::int64_t>(arguments.size()), &outcome.value);
  if (outcome.value.kind == KM_STRING) outcome.text = static_cast<const char*>(outcome.value.data);
  return outcome;
}

TEST_CASE("the module lists its functions with docs and signatures") {
  CHECK(std::string(TheModule().doc) == "test extension");
  CHECK(std::string(Function("same").doc) == "same");
  CHECK(std::string(Function("add").signatures) == "    1. (arg0: int, arg1: int) -> int\n");
  CHECK(std::string(Function("describe").signatures).find("extra: Optional[torch.Tensor] = ...") !=
        std::string::npos);
}

TEST_CASE("another version of the interface is refused") {
  KmHost host = {KM_TORCH_ABI_VERSION + 1, 0, FakeCall, FakeRelease, FakeStream};
  const char* error = nullptr;
  CHECK(kmosaic_torch_open(&host, &error) == nullptr);
  CHECK(error != nullptr);
}

TEST_CASE("a tensor that is handed through keeps its id, and every reference is given back") {
  Held().clear();
  {
    const Outcome outcome = Invoke("same", {TensorValue(Describe(7, {4, 5}, at::kFloat))});
    REQUIRE(outcome.status == KM_OK);
    REQUIRE(outcome.value.kind == KM_TENSOR);
    CHECK(static_cast<const KmTensor*>(outcome.value.data)->id == 7);
    CHECK(Held().count(7) == 1);
  }
  kmosaic_torch_finish();
  CHECK(Held().empty());
}

TEST_CASE("arguments come by position, by name, and by default") {
  const KmTensor x = Describe(1, {2}, at::kFloat);
  const KmTensor y = Describe(2, {2}, at::kFloat);
  CHECK(Invoke("describe", {TensorValue(x)}).text == "103/0.5t02");
  const KmTensor x2 = Describe(3, {2}, at::kFloat);
  CHECK(Invoke("describe", {TensorValue(x2), Bool(true), Keyword("text"), Text("u"),
                            Keyword("extra"), TensorValue(y)})
            .text == "113/0.5u12");
  const std::vector<KmValue> sizes = {Int(1), Int(2), Int(3)};
  const KmTensor x3 = Describe(4, {2}, at::kFloat);
  CHECK(Invoke("describe", {Keyword("x"), TensorValue(x3), Keyword("sizes"), List(sizes)}).text ==
        "103/0.5t03");
  kmosaic_torch_finish();
}

TEST_CASE("arguments that do not fit are refused with the signatures") {
  for (const auto& arguments :
       std::vector<std::vector<KmValue>>{{Int(1)},                  // too few
                                         {Int(1), Int(2), Int(3)},  // too many
                                         {Int(1), Float(2)},        // a float for an int
                                         {Int(1), Int(std::int64_t{1} << 40)},  // does not fit
                                         {Int(1), None()},
                                         {Int(1), Text("2")},
                                         {Int(1), Keyword("nowhere"), Int(2)},
                                         {Int(1), Keyword("arg0"), Int(2)}}) {
    const Outcome outcome = Invoke("add", arguments);
    CHECK(outcome.status == KM_BAD_ARGUMENTS);
    CHECK(outcome.text == "    1. (arg0: int, arg1: int) -> int\n");
  }
  CHECK(Invoke("add", {Int(1), Bool(true)}).value.integer == 2);
  CHECK(Invoke("half_of", {Int(3)}).value.real == 1.5);
  CHECK(Invoke("half_of", {Text("3")}).status == KM_BAD_ARGUMENTS);
  CHECK(Invoke("same", {None()}).status == KM_BAD_ARGUMENTS);
}

TEST_CASE("tuples and lists go both ways") {
  const std::vector<KmValue> pair = {Int(4), Int(9)};
  const Outcome outcome = Invoke("several", {List(pair, KM_TUPLE)});
  REQUIRE(outcome.value.kind == KM_TUPLE);
  REQUIRE(outcome.value.size == 2);
  const auto* items = static_cast<const KmValue*>(outcome.value.data);
  CHECK(items[0].integer == 4);
  REQUIRE(items[1].kind == KM_LIST);
  CHECK(static_cast<const KmValue*>(items[1].data)[1].real == 9.0);
  CHECK(Invoke("several", {List({Int(1)})}).status == KM_BAD_ARGUMENTS);
  CHECK(Invoke("last_of", {List(pair)}).value.integer == 9);
}

TEST_CASE("overloads are tried in order") {
  CHECK(Invoke("overloaded", {Int(1)}).text == "int");
  CHECK(Invoke("overloaded", {Text("a")}).text == "text");
  CHECK(Invoke("overloaded", {Float(1)}).status == KM_BAD_ARGUMENTS);
}

TEST_CASE("an undefined tensor is None") { CHECK(Invoke("nothing", {}).value.kind == KM_NONE); }

TEST_CASE("C++ exceptions keep their kind and text") {
  CHECK(Invoke("fails", {Int(0)}).status == KM_RUNTIME_ERROR);
  CHECK(Invoke("fails", {Int(0)}).text == "kind is 0");
  CHECK(Invoke("fails", {Int(1)}).status == KM_INDEX_ERROR);
  CHECK(Invoke("fails", {Int(2)}).status == KM_VALUE_ERROR);
  CHECK(Invoke("fails", {Int(3)}).text == "Caught an unknown exception!");
}

TEST_CASE("data_ptr insists on the element type") {
  float data[] = {2.5f};
  CHECK(Invoke("first_as_float", {TensorValue(Describe(1, {1}, at::kFloat, data))}).value.real ==
        2.5);
  const Outcome outcome = Invoke("first_as_float", {TensorValue(Describe(2, {1}, at::kInt, data))});
  CHECK(outcome.status == KM_RUNTIME_ERROR);
  CHECK(outcome.text == "expected scalar type Float but found Int");
}

TEST_CASE("dispatch picks the type, and names what it has not") {
  CHECK(Invoke("dispatched", {TensorValue(Describe(1, {1}, at::kHalf))}).text == "half");
  CHECK(Invoke("dispatched", {TensorValue(Describe(1, {1}, at::kDouble))}).text == "double");
  const Outcome outcome = Invoke("dispatched", {TensorValue(Describe(1, {1}, at::kLong))});
  CHECK(outcome.status == KM_NOT_IMPLEMENTED);
  CHECK(outcome.text == "\"dispatched\" not implemented for 'Long'");
}

TEST_CASE("operations are called back in order, and a Python error comes through") {
  Held().clear();
  Calls().clear();
  const Outcome outcome = Invoke("operations", {TensorValue(Describe(5, {2, 3}, at::kFloat))});
  CHECK(outcome.status == KM_PYTHON_ERROR);
  CHECK(outcome.text == "shape '[-1]' is invalid");
  CHECK(Calls() == std::vector<std::string>{"empty(7:0,dtype=,9:5,device=,10:1", "add(6:0,6:0",
                                            "sum(6:0,7:0,2:1", "view(6:0,7:0"});
  kmosaic_torch_finish();
  CHECK(Held().empty());
}

TEST_CASE("half and bfloat16 round as IEEE 754 does") {
  CHECK(static_cast<float>(c10::Half(1.0f)) == 1.0f);
  CHECK(c10::Half(65520.0f).x == 0x7c00);
  CHECK(c10::Half(65519.0f).x == 0x7bff);
  CHECK(c10::Half(5.9604645e-8f).x == 0x0001);
  CHECK(c10::Half(2.0e-8f).x == 0x0000);
  CHECK(c10::Half(-2048.0f - 1.0f).x == c10::Half(-2048.0f).x);  // a tie goes to even
  CHECK(std::isnan(static_cast<float>(c10::Half(NAN))));
  CHECK(c10::BFloat16(1.00390625f).x == 0x3f80);
  CHECK(c10::BFloat16(1.01171875f).x == 0x3f82);
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const c10::Half value(static_cast<std::uint16_t>(bits), c10::Half::from_bits());
    if (c10::Half(static_cast<float>(value)).x != bits) FAIL("bits " << bits);
  }
}

// What torch's own c10 accepts and refuses: each converts to the other without a cast.
TEST_CASE("half and float compare, but are no two operands of one conditional") {
  CHECK(CanCompare<c10::Half, c10::Half>);
  CHECK(CanCompare<c10::Half, float>);
  CHECK(CanCompare<c10::BFloat16, c10::BFloat16>);
  CHECK(CanChoose<c10::Half, c10::Half>);
  CHECK_FALSE(CanChoose<c10::Half, float>);
  CHECK_FALSE(CanChoose<float, c10::BFloat16>);
}

}  // namespace
}  // namespace kmosaic
