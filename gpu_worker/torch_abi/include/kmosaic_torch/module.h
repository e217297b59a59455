// PYBIND11_MODULE and m.def over the C interface.
#ifndef KMOSAIC_TORCH_MODULE_H_
#define KMOSAIC_TORCH_MODULE_H_

#include "kmosaic_torch/caster.h"

namespace pybind11 {

// py::arg("name") and py::arg("name") = default.
struct arg;
struct arg_v {
  std::string name;
  kmosaic_torch::Value value;
};
struct arg {
  explicit arg(const char* text) : name(text) {}
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool = true) { return *this; }
  template <class T>
  arg_v operator=(const T& value) const {
    return {name, kmosaic_torch::Value(value)};
  }
  std::string name;
};
struct none {
  operator kmosaic_torch::Value() const { return {}; }
};
struct kw_only {};
struct pos_only {};
struct gil_scoped_release {
  gil_scoped_release() {}
};
struct gil_scoped_acquire {
  gil_scoped_acquire() {}
};
template <class... T>
struct call_guard {};
enum class return_value_policy { automatic, automatic_reference, take_ownership, copy, move,
                                 reference, reference_internal };
using error_already_set = kmosaic_torch::PythonError;
using value_error = c10::ValueError;
using index_error = c10::IndexError;
using type_error = c10::TypeError;
namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

}  // namespace pybind11
namespace py = pybind11;

namespace kmosaic_torch {

struct Parameter {
  std::string name;
  bool has_default = false;
  Value default_value;
};

// One C++ function under one Python name.
struct Overload {
  std::vector<Parameter> parameters;
  std::vector<std::string> types;
  std::string result_type;
  // False when the arguments do not fit.
  std::function<bool(const std::vector<Value>& arguments, Value* result)> run;

  std::string Signature() const {
    std::string text = "(";
    for (size_t i = 0; i < types.size(); ++i) {
      text += (i == 0 ? "" : ", ") + parameters[i].name + ": " + types[i];
      if (parameters[i].has_default) text += " = ...";
    }
    return text + ") -> " + result_type;
  }

  // Puts positional and keyword arguments and defaults into the order of the parameters.
  bool Arrange(const std::vector<Value>& given, std::vector<Value>* arranged) const {
    std::vector<const Value*> places(parameters.size(), nullptr);
    size_t positional = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i].kind() != KM_KEYWORD) {
        if (positional >= places.size()) return false;
        places[positional++] = &given[i];
        continue;
      }
      size_t place = 0;
      while (place < places.size() && parameters[place].name != given[i].text()) ++place;
      if (place == places.size() || places[place] != nullptr || i + 1 >= given.size()) {
        return false;
      }
      places[place] = &given[++i];
    }
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == nullptr) {
        if (!parameters[i].has_default) return false;
        places[i] = &parameters[i].default_value;
      }
      arranged->push_back(*places[i]);
    }
    return true;
  }
};

template <class R, class... A, class F, size_t... I>
Overload MakeOverload(F function, std::index_sequence<I...>) {
  Overload overload;
  overload.types = {Caster<std::decay_t<A>>::Text()...};
  overload.result_type = ResultText<R>();
  overload.run = [function](const std::vector<Value>& arguments, Value* result) mutable {
    std::tuple<Holder<std::decay_t<A>>...> holders;
    (void)holders;
    (void)arguments;
    if (!(std::get<I>(holders).Load(arguments[I]) && ...)) return false;
    // Each parameter gets its holder's value: by reference where it is one.
    if constexpr (std::is_void<R>::value) {
      function(static_cast<A&&>(std::get<I>(holders).Get())...);
      *result = Value();
    } else {
      *result = Value(function(static_cast<A&&>(std::get<I>(holders).Get())...));
    }
    return true;
  };
  return overload;
}
template <class R, class... A>
Overload ToOverload(R (*function)(A...)) {
  return MakeOverload<R, A...>(function, std::index_sequence_for<A...>());
}
template <class F, class R, class C, class... A>
Overload FromCallable(F function, R (C::*)(A...) const) {
  return MakeOverload<R, A...>(std::move(function), std::index_sequence_for<A...>());
}
template <class F, class R, class C, class... A>
Overload FromCallable(F function, R (C::*)(A...)) {
  return MakeOverload<R, A...>(std::move(function), std::index_sequence_for<A...>());
}
template <class F, class = std::enable_if_t<std::is_class<F>::value>>
Overload ToOverload(F function) {
  return FromCallable(std::move(function), &F::operator());
}

struct Function {
  std::string name;
  std::string doc;
  std::string signatures;
  std::vector<Overload> overloads;
};

inline void AddExtra(Function*, Overload* overload, const pybind11::arg& extra) {
  overload->parameters.push_back({extra.name, false, {}});
}
inline void AddExtra(Function*, Overload* overload, const pybind11::arg_v& extra) {
  overload->parameters.push_back({extra.name, true, extra.value});
}
inline void AddExtra(Function* function, Overload*, const char* doc) { function->doc = doc; }
inline void AddExtra(Function* function, Overload*, const std::string& doc) {
  function->doc = doc;
}
inline void AddExtra(Function*, Overload*, pybind11::return_value_policy) {}
inline void AddExtra(Function*, Overload*, pybind11::kw_only) {}
inline void AddExtra(Function*, Overload*, pybind11::pos_only) {}
template <class... T>
inline void AddExtra(Function*, Overload*, pybind11::call_guard<T...>) {}

// What PYBIND11_MODULE's body fills. Lives as long as the process.
class Module {
 public:
  template <class F, class... Extra>
  Module& def(const char* name, F function, const Extra&... extra) {
    Function& target = Get(name);
    Overload overload = ToOverload(std::move(function));
    (AddExtra(&target, &overload, extra), ...);
    for (size_t i = overload.parameters.size(); i < overload.types.size(); ++i) {
      overload.parameters.push_back({"arg" + std::to_string(i), false, {}});
    }
    target.signatures += "    " + std::to_string(target.overloads.size() + 1) + ". " +
                         overload.Signature() + "\n";
    target.overloads.push_back(std::move(overload));
    return *this;
  }
  std::string& doc() { return doc_; }

  const std::deque<Function>& functions() const { return functions_; }

 private:
  Function& Get(const char* name) {
    for (Function& function : functions_) {
      if (function.name == name) return function;
    }
    functions_.emplace_back();
    functions_.back().name = name;
    return functions_.back();
  }
  std::deque<Function> functions_;
  std::string doc_;
};

inline Arena& ResultArena() {
  static thread_local Arena arena;
  return arena;
}

inline int32_t ErrorResult(int32_t status, const char* text, KmValue* result) {
  Arena& arena = ResultArena();
  arena.strings.emplace_back(text);
  *result = {};
  result->kind = KM_STRING;
  result->data = arena.strings.back().c_str();
  result->size = static_cast<int64_t>(arena.strings.back().size());
  return status;
}

inline int32_t Invoke(const Function& function, const KmValue* arguments, int64_t count,
                      KmValue* result) {
  Arena& arena = ResultArena();
  arena.Clear();
  // Exceptions become pybind11's: the C++ standard ones have Python counterparts.
  try {
    std::vector<Value> given;
    given.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) given.push_back(Value::FromRaw(arguments[i]));
    for (const Overload& overload : function.overloads) {
      std::vector<Value> arranged;
      if (!overload.Arrange(given, &arranged)) continue;
      Value value;
      if (!overload.run(arranged, &value)) continue;
      *result = value.ToRaw(&arena);
      return KM_OK;
    }
    return ErrorResult(KM_BAD_ARGUMENTS, function.signatures.c_str(), result);
  } catch (const c10::Error& error) {
    return ErrorResult(error.status(), error.what(), result);
  } catch (const std::bad_alloc& error) {
    return ErrorResult(KM_MEMORY_ERROR, error.what(), result);
  } catch (const std::out_of_range& error) {
    return ErrorResult(KM_INDEX_ERROR, error.what(), result);
  } catch (const std::invalid_argument& error) {
    return ErrorResult(KM_VALUE_ERROR, error.what(), result);
  } catch (const std::domain_error& error) {
    return ErrorResult(KM_VALUE_ERROR, error.what(), result);
  } catch (const std::length_error& error) {
    return ErrorResult(KM_VALUE_ERROR, error.what(), result);
  } catch (const std::exception& error) {
    return ErrorResult(KM_RUNTIME_ERROR, error.what(), result);
  } catch (...) {
    return ErrorResult(KM_RUNTIME_ERROR, "Caught an unknown exception!", result);
  }
}

inline const KmModule* Open(const KmHost* given_host, void (*fill)(Module&), const char** error) {
  if (given_host->version != KM_TORCH_ABI_VERSION) {
    *error = "the extension was built for another version of the light binding";
    return nullptr;
  }
  host = given_host;
  // Never destroyed: Python may call until the process ends.
  static auto* module = new Module;
  static auto* functions = new std::vector<KmFunction>;
  static KmModule description = {};
  if (functions->empty()) {
    static std::string message;
    try {
      fill(*module);
    } catch (const std::exception& exception) {
      message = exception.what();
      *error = message.c_str();
      return nullptr;
    }
    for (const Function& function : module->functions()) {
      functions->push_back({function.name.c_str(), function.doc.c_str(),
                            function.signatures.c_str(), const_cast<Function*>(&function)});
    }
  }
  description.version = KM_TORCH_ABI_VERSION;
  description.doc = module->doc().c_str();
  description.function_count = static_cast<int64_t>(functions->size());
  description.functions = functions->data();
  return &description;
}

}  // namespace kmosaic_torch

namespace pybind11 {
using module_ = kmosaic_torch::Module;
using module = kmosaic_torch::Module;
}  // namespace pybind11

namespace torch {
// load_inline binds its functions through this; here def() does all of it.
template <class F>
F wrap_pybind_function(F function) {
  return function;
}
}  // namespace torch

#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME kmosaic_extension
#endif

#define PYBIND11_MODULE(name, variable, ...)                                                      \
  static void kmosaic_fill_module(kmosaic_torch::Module&);                                        \
  extern "C" __attribute__((visibility("default"))) const KmModule* kmosaic_torch_open(           \
      const KmHost* host, const char** error) {                                                   \
    return kmosaic_torch::Open(host, &kmosaic_fill_module, error);                                \
  }                                                                                               \
  extern "C" __attribute__((visibility("default"))) int32_t kmosaic_torch_invoke(                 \
      void* self, const KmValue* arguments, int64_t count, KmValue* result) {                     \
    return kmosaic_torch::Invoke(*static_cast<const kmosaic_torch::Function*>(self), arguments,   \
                                 count, result);                                                  \
  }                                                                                               \
  extern "C" __attribute__((visibility("default"))) void kmosaic_torch_finish(void) {             \
    kmosaic_torch::ResultArena().Clear();                                                         \
  }                                                                                               \
  static void kmosaic_fill_module([[maybe_unused]] kmosaic_torch::Module& variable)

#endif  // KMOSAIC_TORCH_MODULE_H_
