#include "coordinator/store/drain_orders.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr absl::Duration kKept = absl::Hours(24 * 7);

struct Order {
  std::string worker;
  std::string incarnation;
  absl::Time at;
};

absl::Status ForEach(const TaskStore& store, const std::function<void(const Order&)>& visit) {
  std::unique_ptr<StoreSnapshot> snapshot = store.Snapshot();
  std::unique_ptr<StoreCursor> cursor = snapshot->Scan(Family::kMeta, keys::AllDrains());
  for (; cursor->Valid(); cursor->Next()) {
    Order order;
    order.worker = cursor->key().substr(std::string_view(keys::kDrain).size());
    std::string row(cursor->value());
    std::pair<std::string, std::string> parts = absl::StrSplit(row, absl::MaxSplits(' ', 1));
    int64_t seconds = 0;
    if (!absl::SimpleAtoi(parts.first, &seconds)) {
      return absl::DataLossError("the store contradicts itself: an order to drain has no time");
    }
    order.at = absl::FromUnixSeconds(seconds);
    order.incarnation = std::move(parts.second);
    visit(order);
  }
  return cursor->status();
}

}  // namespace

absl::StatusOr<DrainOrders> ReadDrainOrders(const TaskStore& store, absl::Time now) {
  DrainOrders orders;
  KMOSAIC_RETURN_IF_ERROR(ForEach(store, [&](const Order& order) {
    if (now - order.at < kKept) orders[order.worker] = order.incarnation;
  }));
  return orders;
}

absl::Status PutDrainOrder(const TaskStore& store, const std::string& worker,
                           const std::string& incarnation, absl::Time now, WriteBatch& batch) {
  KMOSAIC_RETURN_IF_ERROR(ForEach(store, [&](const Order& order) {
    if (now - order.at >= kKept) batch.Delete(Family::kMeta, keys::Drain(order.worker));
  }));
  if (incarnation.empty()) {
    batch.Delete(Family::kMeta, keys::Drain(worker));
  } else {
    batch.Put(Family::kMeta, keys::Drain(worker),
              absl::StrCat(absl::ToUnixSeconds(now), " ", incarnation));
  }
  return absl::OkStatus();
}

}  // namespace kmosaic
