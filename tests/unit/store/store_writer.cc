// Writes pairs to the store and prints each number once it is acknowledged, until killed.
#include <cstdio>
#include <string>

#include "coordinator/store/rocksdb_task_store.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto store = kmosaic::RocksDbTaskStore::Open(argv[1], {});
  if (!store.ok()) return 3;
  uint32_t number = 0;
  while ((*store)->Get(kmosaic::Family::kItem, kmosaic::keys::Item(1, number)).ok()) ++number;
  for (;; ++number) {
    kmosaic::WriteBatch batch;
    batch.Put(kmosaic::Family::kItem, kmosaic::keys::Item(1, number), std::string(100, 'i'));
    batch.Put(kmosaic::Family::kStep, kmosaic::keys::Step(1, number, 0), std::string(5000, 's'));
    if (!(*store)->Write(batch).ok()) return 4;
    std::printf("%u\n", number);
    std::fflush(stdout);
  }
}
