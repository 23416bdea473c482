// What checked mode remembers about memory: for every few bytes who last wrote and read them, and whether anyone did.
#pragma once

#include "../../include/cpu_device/abi.h"

namespace cpu_device {

// How an access is made; bits.
constexpr u32 is_write = 1, is_atomic = 2, is_volatile = 4;

// One access: who, when, where.
struct Stamp {
    u32 time;  // 0: no access
    u32 block;
    u16 rank;
    u16 kind;
    u32 line;
};

// The accesses to one granule that a later one is held against.
struct Cell {
    Stamp written;
    Stamp read[2];
};

// Shared memory: a variable of the arena, the dynamic array, or thread-local memory of the module.
enum class Space : u32 { global, shared_variable, shared_dynamic, shared_of_module, module };

// A stretch of memory that belongs to one variable.
struct Region {
    u64 begin, bytes;
    Space space;
    u32 granule;        // bytes that one cell stands for
    u32 element_bytes;  // of the declared type
    const char* name;   // of a shared variable
    const void* key;    // where that variable is declared
    Cell* cells;
    u8* is_written;  // by byte; null where everything was there before

    bool is_shared() const { return space != Space::global && space != Space::module; }
    bool holds(u64 address, u64 count) const { return address >= begin && address + count <= begin + bytes; }
};

// Zeroed memory that takes no room until it is used; ends the run where there is none.
void* reserve(u64 bytes);

// Give a region its shadow.
void attach_shadow(Region& region, bool is_initialised);

}  // namespace cpu_device
