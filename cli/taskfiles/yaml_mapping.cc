#include "cli/taskfiles/yaml_mapping.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/taskfiles/nearest.h"

namespace kmosaic {
namespace {

bool IsPlain(const YAML::Node& node) { return node.IsScalar() && node.Tag() != "!"; }

std::string Describe(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  if (node.IsScalar()) {
    return absl::StrCat(node.Tag() == "!" ? "the text " : "", "\"", node.Scalar(), "\"");
  }
  return "nothing";
}

std::optional<double> AsNumber(const YAML::Node& node) {
  double value = 0;
  bool good = IsPlain(node) && absl::SimpleAtod(node.Scalar(), &value) && std::isfinite(value);
  return good ? std::optional<double>(value) : std::nullopt;
}

std::optional<int64_t> AsInteger(const YAML::Node& node) {
  int64_t value = 0;
  if (!IsPlain(node) || !absl::SimpleAtoi(node.Scalar(), &value)) return std::nullopt;
  return value;
}

std::string IntegerRange(int64_t min, int64_t max) {
  if (max == std::numeric_limits<int64_t>::max())
    return absl::StrCat("an integer of at least ", min);
  return absl::StrCat("an integer from ", min, " to ", max);
}

}  // namespace

YamlMapping YamlMapping::Root(const YamlDocument& document, Problems& problems) {
  return YamlMapping(document, document.root(), "", problems);
}

YamlMapping::YamlMapping(const YamlDocument& document, YAML::Node node, std::string path,
                         Problems& problems)
    : document_(&document), node_(std::move(node)), path_(std::move(path)), problems_(&problems) {
  std::set<std::string> seen;
  for (const auto& pair : node_) {
    if (!pair.first.IsScalar()) {
      problems_->Add(Place(path_, pair.first, node_.Mark()), "a key must be a single word");
      continue;
    }
    std::string key = pair.first.Scalar();
    if (!seen.insert(key).second) {
      problems_->Add(Place(PathOf(key), pair.first, node_.Mark()),
                     absl::StrCat("\"", PathOf(key), "\" is given twice; keep one"));
      continue;
    }
    entries_.push_back({key, pair.first.Mark(), pair.second});
  }
}

const YamlMapping::Entry* YamlMapping::Find(const std::string& key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const YamlMapping::Entry* YamlMapping::Ask(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  return Find(key);
}

std::string YamlMapping::PathOf(const std::string& key) const {
  return path_.empty() ? key : absl::StrCat(path_, ".", key);
}

Location YamlMapping::Place(const std::string& path, const YAML::Node& node,
                            const YAML::Mark& otherwise) const {
  // The place of a value that is not there is that of whatever comes next.
  YAML::Mark mark = node.IsNull() ? otherwise : node.Mark();
  return document_->At(path, mark.is_null() ? otherwise : mark);
}

Location YamlMapping::At(const std::string& key) const {
  if (const Entry* entry = Find(key)) return Place(PathOf(key), entry->value, entry->key_mark);
  YAML::Mark start;
  return Place(path_, node_, start);
}

void YamlMapping::Fail(const std::string& key, const std::string& what) {
  problems_->Add(At(key), absl::StrCat(PathOf(key), ": ", what));
}

void YamlMapping::Mistyped(const std::string& path, const YAML::Node& node,
                           const YAML::Mark& otherwise, const std::string& expected) {
  problems_->Add(Place(path, node, otherwise),
                 absl::StrCat(path, ": expected ", expected, ", found ", Describe(node)));
}

bool YamlMapping::Has(const std::string& key) const { return Find(key) != nullptr; }

void YamlMapping::Require(const std::string& key, const std::string& hint) {
  if (Ask(key) == nullptr) Fail(key, absl::StrCat("is required; ", hint));
}

std::optional<std::string> YamlMapping::Text(const std::string& key) {
  const Entry* entry = Ask(key);
  if (entry == nullptr) return std::nullopt;
  if (!entry->value.IsScalar()) {
    Mistyped(PathOf(key), entry->value, entry->key_mark, "text");
    return std::nullopt;
  }
  return entry->value.Scalar();
}

std::optional<int64_t> YamlMapping::Integer(const std::string& key, int64_t min, int64_t max) {
  const Entry* entry = Ask(key);
  if (entry == nullptr) return std::nullopt;
  auto value = AsInteger(entry->value);
  if (!value || *value < min || *value > max) {
    Mistyped(PathOf(key), entry->value, entry->key_mark, IntegerRange(min, max));
    return std::nullopt;
  }
  return value;
}

std::optional<double> YamlMapping::Number(const std::string& key, const std::string& range,
                                          const std::function<bool(double)>& accept) {
  const Entry* entry = Ask(key);
  if (entry == nullptr) return std::nullopt;
  auto value = AsNumber(entry->value);
  if (!value || !accept(*value)) {
    Mistyped(PathOf(key), entry->value, entry->key_mark, range);
    return std::nullopt;
  }
  return value;
}

std::optional<bool> YamlMapping::Bool(const std::string& key) {
  const Entry* entry = Ask(key);
  if (entry == nullptr) return std::nullopt;
  if (IsPlain(entry->value)) {
    if (entry->value.Scalar() == "true") return true;
    if (entry->value.Scalar() == "false") return false;
  }
  Mistyped(PathOf(key), entry->value, entry->key_mark, "true or false");
  return std::nullopt;
}

std::optional<absl::Duration> YamlMapping::DurationOf(const std::string& key) {
  const Entry* entry = Ask(key);
  if (entry == nullptr) return std::nullopt;
  absl::Duration value;
  if (!entry->value.IsScalar() || !absl::ParseDuration(entry->value.Scalar(), &value) ||
      value < absl::ZeroDuration() || value == absl::InfiniteDuration()) {
    Mistyped(PathOf(key), entry->value, entry->key_mark,
             "a duration with its unit (90s, 2m, 1h30m)");
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> YamlMapping::Choice(const std::string& key,
                                               const std::vector<std::string>& names) {
  const Entry* entry = Ask(key);
  if (entry == nullptr) return std::nullopt;
  if (entry->value.IsScalar() &&
      std::find(names.begin(), names.end(), entry->value.Scalar()) != names.end()) {
    return entry->value.Scalar();
  }
  Mistyped(PathOf(key), entry->value, entry->key_mark,
           names.size() == 1 ? names[0] : absl::StrCat("one of ", absl::StrJoin(names, ", ")));
  return std::nullopt;
}

bool YamlMapping::IsList(const std::string& key, const Entry& entry, const std::string& expected) {
  if (entry.value.IsSequence()) return true;
  Mistyped(PathOf(key), entry.value, entry.key_mark, expected);
  return false;
}

std::optional<std::vector<YamlText>> YamlMapping::TextList(const std::string& key) {
  const Entry* entry = Ask(key);
  if (entry == nullptr || !IsList(key, *entry, "a list of texts")) return std::nullopt;
  std::vector<YamlText> values;
  for (size_t i = 0; i < entry->value.size(); ++i) {
    YAML::Node node = entry->value[i];
    std::string path = absl::StrCat(PathOf(key), "[", i, "]");
    if (!node.IsScalar()) {
      Mistyped(path, node, entry->key_mark, "text");
      return std::nullopt;
    }
    values.push_back({node.Scalar(), Place(path, node, entry->key_mark)});
  }
  return values;
}

std::optional<std::vector<std::vector<YamlText>>> YamlMapping::TextListList(
    const std::string& key) {
  const Entry* entry = Ask(key);
  if (entry == nullptr || !IsList(key, *entry, "a list of lists")) return std::nullopt;
  std::vector<std::vector<YamlText>> lists;
  for (size_t i = 0; i < entry->value.size(); ++i) {
    YAML::Node list = entry->value[i];
    std::string path = absl::StrCat(PathOf(key), "[", i, "]");
    if (!list.IsSequence()) {
      Mistyped(path, list, entry->key_mark, "a list");
      return std::nullopt;
    }
    std::vector<YamlText> values;
    for (size_t j = 0; j < list.size(); ++j) {
      YAML::Node node = list[j];
      if (!node.IsScalar()) {
        Mistyped(absl::StrCat(path, "[", j, "]"), node, entry->key_mark, "text");
        return std::nullopt;
      }
      values.push_back({node.Scalar(), Place(path, node, entry->key_mark)});
    }
    lists.push_back(std::move(values));
  }
  return lists;
}

std::optional<std::vector<int64_t>> YamlMapping::IntegerList(const std::string& key, int64_t min) {
  const Entry* entry = Ask(key);
  if (entry == nullptr || !IsList(key, *entry, "a list of integers")) return std::nullopt;
  std::vector<int64_t> values;
  for (size_t i = 0; i < entry->value.size(); ++i) {
    YAML::Node node = entry->value[i];
    auto value = AsInteger(node);
    if (!value || *value < min) {
      Mistyped(absl::StrCat(PathOf(key), "[", i, "]"), node, entry->key_mark,
               IntegerRange(min, std::numeric_limits<int64_t>::max()));
      return std::nullopt;
    }
    values.push_back(*value);
  }
  return values;
}

std::optional<std::vector<double>> YamlMapping::NumberList(
    const std::string& key, const std::string& range, const std::function<bool(double)>& accept) {
  const Entry* entry = Ask(key);
  if (entry == nullptr || !IsList(key, *entry, "a list of numbers")) return std::nullopt;
  if (entry->value.size() == 0) Fail(key, "is an empty list");
  std::vector<double> values;
  for (size_t i = 0; i < entry->value.size(); ++i) {
    YAML::Node node = entry->value[i];
    auto value = AsNumber(node);
    if (!value || !accept(*value)) {
      Mistyped(absl::StrCat(PathOf(key), "[", i, "]"), node, entry->key_mark, range);
      return std::nullopt;
    }
    values.push_back(*value);
  }
  return values;
}

std::optional<std::map<std::string, std::string>> YamlMapping::TextMap(const std::string& key) {
  auto mapping = Mapping(key);
  if (!mapping) return std::nullopt;
  std::map<std::string, std::string> values;
  for (const Entry& entry : mapping->entries_) {
    if (auto value = mapping->Text(entry.key)) values[entry.key] = *value;
  }
  return values;
}

std::optional<std::map<std::string, int64_t>> YamlMapping::IntegerMap(const std::string& key,
                                                                      int64_t min) {
  auto mapping = Mapping(key);
  if (!mapping) return std::nullopt;
  std::map<std::string, int64_t> values;
  for (const Entry& entry : mapping->entries_) {
    if (auto value = mapping->Integer(entry.key, min)) values[entry.key] = *value;
  }
  return values;
}

std::optional<YamlMapping> YamlMapping::Mapping(const std::string& key) {
  const Entry* entry = Ask(key);
  if (entry == nullptr) return std::nullopt;
  if (!entry->value.IsMap()) {
    Mistyped(PathOf(key), entry->value, entry->key_mark, "a mapping of keys to values");
    return std::nullopt;
  }
  return YamlMapping(*document_, entry->value, PathOf(key), *problems_);
}

std::optional<std::vector<YamlMapping>> YamlMapping::MappingList(const std::string& key) {
  const Entry* entry = Ask(key);
  if (entry == nullptr || !IsList(key, *entry, "a list of mappings")) return std::nullopt;
  std::vector<YamlMapping> mappings;
  for (size_t i = 0; i < entry->value.size(); ++i) {
    std::string path = absl::StrCat(PathOf(key), "[", i, "]");
    if (!entry->value[i].IsMap()) {
      Mistyped(path, entry->value[i], entry->key_mark, "a mapping of keys to values");
      return std::nullopt;
    }
    mappings.push_back(YamlMapping(*document_, entry->value[i], path, *problems_));
  }
  return mappings;
}

void YamlMapping::Finish() {
  for (const Entry& entry : entries_) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    std::string what = absl::StrCat("unknown key \"", PathOf(entry.key), "\"");
    if (auto near = Nearest(entry.key, known_)) {
      absl::StrAppend(&what, "; did you mean \"", *near, "\"?");
    } else {
      absl::StrAppend(&what, "; known here: ", absl::StrJoin(known_, ", "));
    }
    problems_->Add(document_->At(PathOf(entry.key), entry.key_mark), what);
  }
}

}  // namespace kmosaic
