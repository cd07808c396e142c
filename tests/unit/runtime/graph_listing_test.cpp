#include "runtime/graph/listing.h"

#include <gtest/gtest.h>

namespace capstan::runtime::testing {
namespace {

/// Three ops in a row, the second with two nodes.
GraphListing chain() {
  GraphListing listing;
  for (const std::size_t issue : {0, 1, 1, 2}) listing.nodes.push_back({"kernel", "k", issue});
  listing.edges = {{0, 1}, {1, 2}, {2, 3}};
  return listing;
}

TEST(GraphListing, AChainInIssueOrderIsThePlans) {
  EXPECT_EQ(find_listing_problem(chain(), 3), "");
}

TEST(GraphListing, SaysHowAGraphStraysFromThePlan) {
  GraphListing missing = chain();
  missing.nodes.pop_back();
  missing.edges.pop_back();
  EXPECT_EQ(find_listing_problem(missing, 3), "op 2 of the segment left no node");
  GraphListing foreign = chain();
  foreign.nodes[3].issue = 7;
  EXPECT_EQ(find_listing_problem(foreign, 3), "a node belongs to no op");
  GraphListing backwards = chain();
  backwards.edges[2] = {3, 1};
  EXPECT_EQ(find_listing_problem(backwards, 3), "op 1 of the segment waits for op 2");
  // Without the edge the two ops could run at once.
  GraphListing loose = chain();
  loose.edges.erase(loose.edges.begin());
  EXPECT_EQ(find_listing_problem(loose, 3), "op 1 of the segment does not wait for the one before it");
}

}  // namespace
}  // namespace capstan::runtime::testing
