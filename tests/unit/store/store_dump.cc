#include "tests/unit/store/store_dump.h"

#include <absl/strings/escaping.h>

#include <catch2/catch.hpp>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

std::optional<Family> FindFamily(const std::string& name) {
  for (Family family : kFamilies) {
    if (name == FamilyName(family)) return family;
  }
  return std::nullopt;
}

}  // namespace

std::string DumpStore(const TaskStore& store) {
  std::string dump;
  auto snapshot = store.Snapshot();
  for (Family family : kFamilies) {
    auto cursor = snapshot->Scan(family, {"", ""});
    for (; cursor->Valid(); cursor->Next()) {
      absl::StrAppend(&dump, std::string(FamilyName(family)), " ", Hex(cursor->key()), " ",
                      Hex(cursor->value()), "\n");
    }
  }
  return dump;
}

void LoadDump(const std::string& dump, TaskStore& store) {
  std::istringstream lines(dump);
  WriteBatch batch;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string key;
    std::string value;
    words >> name >> key >> value;
    INFO(line);
    std::optional<Family> family = FindFamily(name);
    REQUIRE(family.has_value());
    REQUIRE(!key.empty());
    batch.Put(*family, absl::HexStringToBytes(key), absl::HexStringToBytes(value));
  }
  REQUIRE(store.Write(batch).ok());
}

}  // namespace kmosaic
