// Where in memory the block's address may lie, and what is read of it where something else is read than a pointer.
//
//     struct { char *text; int length; char mark[8]; } s;    s.text = block: the address lies in s, at 0
//     s.length, s.mark[i]                                    not a part of it
//     ((char *)&s)[i]                                        a part of it
//     other(&s)                                              what `other` reads as bytes may be a part of it,
//     other(s.mark)                                          here only what it finds by going back to the whole of s
#pragma once

#include "guard.h"

namespace caulk {

class Layout {
public:
  explicit Layout(const DataLayout &sizes) : sizes(sizes) {}
  void clear() { addresses.clear(); }
  /// Without an offset: anywhere.
  void put(Value *object, std::optional<int64_t> offset) { addresses[object].push_back(offset); }
  /// The one place in it where the address may lie, if there is one.
  std::optional<int64_t> placeIn(const Value *object) const {
    auto found = addresses.find(object);
    return found != addresses.end() && all_equal(found->second) ? found->second.front() : std::nullopt;
  }
  /// Whether what lies there may be a part of the address; nothing where that cannot be told from here.
  std::optional<bool> overlaps(const Value &address, uint64_t size) const;
  /// What the flags of an address become by going to a part of what it points to.
  unsigned flagsOf(const GetElementPtrInst &part, unsigned flags, Depth deep) const;

private:
  const DataLayout &sizes;
  std::map<const Value *, std::vector<std::optional<int64_t>>> addresses;
};

/// A number of which nothing is left but what a comparison says of it.
bool onlyCompared(const Value &number, unsigned depth);

/// A number that becomes an address again.
bool becomesPointer(const Value &number, unsigned depth);

} // namespace caulk
