// A store's rows as text, for fixtures of earlier schemas.
#ifndef KMOSAIC_TESTS_UNIT_STORE_STORE_DUMP_H_
#define KMOSAIC_TESTS_UNIT_STORE_STORE_DUMP_H_

#include <string>

#include "coordinator/store/task_store.h"

namespace kmosaic {

// One line for each row: family, key and value in hex, separated by spaces; families in
// the order of kFamilies, keys in byte order.
std::string DumpStore(const TaskStore& store);

// Writes the rows of a dump into an empty store; the test fails when a line is not one.
void LoadDump(const std::string& dump, TaskStore& store);

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_STORE_STORE_DUMP_H_
