// The flat buffer that carries one lowered module from LLVM to Rust: LEB128
// numbers, zigzag for signed ones, length-prefixed strings. The Rust half is
// src/bitcode/reader.rs.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace caulk {

class Bytes {
public:
  void byte(uint8_t value) { data.push_back(value); }

  void number(uint64_t value) {
    while (value >= 0x80) {
      data.push_back(uint8_t(value) | 0x80);
      value >>= 7;
    }
    data.push_back(uint8_t(value));
  }

  void signedNumber(int64_t value) { number((uint64_t(value) << 1) ^ uint64_t(value >> 63)); }

  void text(llvm::StringRef value) {
    number(value.size());
    data.append(value.bytes_begin(), value.bytes_end());
  }

  void append(const Bytes &other) { data.append(other.data.begin(), other.data.end()); }

  void clear() { data.clear(); }
  size_t size() const { return data.size(); }
  const uint8_t *begin() const { return data.data(); }

private:
  llvm::SmallVector<uint8_t, 0> data;
};

} // namespace caulk
