#include "coordinator/queue/item_plan.h"

#include <catch2/catch.hpp>
#include <set>
#include <tuple>

#include "coordinator/queue/item_states.h"

namespace kmosaic {
namespace {

v1::JobSpec Spec(int sets, uint32_t samples, v1::ViewAssignment assign) {
  v1::JobSpec spec;
  for (int i = 0; i < sets; ++i) spec.add_views()->add_views(v1::VIEW_REFERENCE);
  spec.set_samples(samples);
  spec.set_assign(assign);
  return spec;
}

TEST_CASE("every task meets every view set and sample exactly once") {
  v1::JobSpec spec = Spec(3, 4, v1::VIEW_ASSIGNMENT_ALL);
  REQUIRE(CountItems(spec, 5) == 60);
  std::set<std::tuple<uint32_t, int, uint32_t>> places;
  for (uint32_t number = 0; number < 60; ++number) {
    ItemPlace place = PlaceOf(spec, number);
    CHECK(place.task < 5);
    CHECK(place.view_set < 3);
    CHECK(place.sample < 4);
    places.emplace(place.task, place.view_set, place.sample);
  }
  CHECK(places.size() == 60);
}

TEST_CASE("round-robin gives task i the view set i mod n") {
  v1::JobSpec spec = Spec(3, 2, v1::VIEW_ASSIGNMENT_ROUND_ROBIN);
  REQUIRE(CountItems(spec, 7) == 14);
  for (uint32_t number = 0; number < 14; ++number) {
    ItemPlace place = PlaceOf(spec, number);
    CHECK(place.task == number / 2);
    CHECK(place.view_set == static_cast<int>(place.task % 3));
    CHECK(place.sample == number % 2);
  }
}

TEST_CASE("a job without an assignment uses all combinations") {
  CHECK(CountItems(Spec(7, 1, v1::VIEW_ASSIGNMENT_UNSPECIFIED), 16) == 112);
}

TEST_CASE("items leave a final state by a retry or when they are given up, and DONE stays") {
  for (int from = v1::ITEM_STATE_READY; from <= v1::ITEM_STATE_DEAD; ++from) {
    for (int to = v1::ITEM_STATE_READY; to <= v1::ITEM_STATE_DEAD; ++to) {
      auto source = static_cast<v1::ItemState>(from);
      auto target = static_cast<v1::ItemState>(to);
      if (source == v1::ITEM_STATE_DONE) CHECK_FALSE(MayMove(source, target));
      bool given_up = IsDeadLetter(source) && target == v1::ITEM_STATE_CANCELLED;
      if (IsFinal(source) && target != v1::ITEM_STATE_READY) {
        CHECK(MayMove(source, target) == given_up);
      }
      if (target == v1::ITEM_STATE_LEASED) {
        CHECK(MayMove(source, target) == (source == v1::ITEM_STATE_READY));
      }
      if (target == v1::ITEM_STATE_DONE) {
        CHECK(MayMove(source, target) == (source == v1::ITEM_STATE_LEASED));
      }
    }
  }
}

}  // namespace
}  // namespace kmosaic
