// The job: what process.py asks of one runner process. Every number is a little-endian 64-bit integer.
#pragma once

#include "../include/cpu_device/abi.h"
#include "sandbox.h"
#include "scheduler.h"

namespace cpu_device {

// A stretch of the shared buffer file and where it must appear in memory.
struct Mapping {
    u64 address;
    u64 file_offset;
    u64 bytes;
};

class JobReader {
  public:
    // Read the whole of `file`; false when it cannot be read.
    bool open(int file);

    u64 number();
    // Bytes with their length in front, padded to 8; zero-terminated by the writer where they are text.
    char* bytes();
    // True once something was asked for beyond the end.
    bool is_exhausted() const { return is_exhausted_; }

  private:
    char* at_ = nullptr;
    char* end_ = nullptr;
    bool is_exhausted_ = false;
};

}  // namespace cpu_device
