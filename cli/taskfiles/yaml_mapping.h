// Strict reading of one YAML mapping: every key known, every value of its type.
//
//   YamlMapping job = YamlMapping::Root(document, problems);
//   if (auto samples = job.Integer("samples", 1, 1000)) spec.set_samples(*samples);
//   job.Finish();
//
// Each reader returns nothing when the key is absent or its value is wrong; what is wrong
// has then been added to the problems, so a caller only asks problems.empty() at the end.
#ifndef KMOSAIC_CLI_TASKFILES_YAML_MAPPING_H_
#define KMOSAIC_CLI_TASKFILES_YAML_MAPPING_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cli/taskfiles/yaml_document.h"

namespace kmosaic {

// One scalar of a list with its place.
struct YamlText {
  std::string text;
  Location where;
};

// The document and the problems must outlive it.
class YamlMapping {
 public:
  static YamlMapping Root(const YamlDocument& document, Problems& problems);

  bool Has(const std::string& key) const;
  // Adds a problem when the key is absent; `hint` says what to write.
  void Require(const std::string& key, const std::string& hint);

  std::optional<std::string> Text(const std::string& key);
  std::optional<int64_t> Integer(const std::string& key, int64_t min,
                                 int64_t max = std::numeric_limits<int64_t>::max());
  // `range` describes what `accept` accepts: "a number from 0 to 2".
  std::optional<double> Number(const std::string& key, const std::string& range,
                               const std::function<bool(double)>& accept);
  std::optional<bool> Bool(const std::string& key);
  std::optional<absl::Duration> DurationOf(const std::string& key);
  // One of `names`, exactly.
  std::optional<std::string> Choice(const std::string& key, const std::vector<std::string>& names);
  std::optional<std::vector<YamlText>> TextList(const std::string& key);
  std::optional<std::vector<std::vector<YamlText>>> TextListList(const std::string& key);
  std::optional<std::vector<int64_t>> IntegerList(const std::string& key, int64_t min);
  // `range` and `accept` as for Number; not empty.
  std::optional<std::vector<double>> NumberList(const std::string& key, const std::string& range,
                                                const std::function<bool(double)>& accept);
  std::optional<std::map<std::string, std::string>> TextMap(const std::string& key);
  std::optional<std::map<std::string, int64_t>> IntegerMap(const std::string& key, int64_t min);
  std::optional<YamlMapping> Mapping(const std::string& key);
  std::optional<std::vector<YamlMapping>> MappingList(const std::string& key);

  // Place of the key's value, or of the mapping where the key is absent.
  Location At(const std::string& key) const;
  // A problem with this key.
  void Fail(const std::string& key, const std::string& what);

  // Reports keys that no reader asked for. Call it last, once.
  void Finish();

 private:
  struct Entry {
    std::string key;
    YAML::Mark key_mark;
    YAML::Node value;
  };

  YamlMapping(const YamlDocument& document, YAML::Node node, std::string path, Problems& problems);
  const Entry* Find(const std::string& key) const;
  // Remembers the key as known.
  const Entry* Ask(const std::string& key);
  std::string PathOf(const std::string& key) const;
  Location Place(const std::string& path, const YAML::Node& node,
                 const YAML::Mark& otherwise) const;
  bool IsList(const std::string& key, const Entry& entry, const std::string& expected);
  void Mistyped(const std::string& path, const YAML::Node& node, const YAML::Mark& otherwise,
                const std::string& expected);

  const YamlDocument* document_;
  YAML::Node node_;
  std::string path_;
  Problems* problems_;
  std::vector<Entry> entries_;
  std::vector<std::string> known_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_YAML_MAPPING_H_
