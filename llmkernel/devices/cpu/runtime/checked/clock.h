// Which accesses happen before which: barriers, warp barriers, and fences with atomics.
//
// Time is one counter that every synchronisation advances. An access carries the time at which it was made, and a thread
// knows of each other thread, warp mate and block up to which time their accesses come before its own.
#pragma once

#include "shadow.h"

namespace cpu_device {

// What is known of every block of the launch: accesses up to that time come before.
using Knowledge = u32*;

// The release that an address carries: a fence followed by an atomic or volatile access to it.
struct SyncVariable {
    u64 address;
    u32 block, block_time;  // for threads of the same block
    Knowledge knowledge;    // for other blocks
};

class BlockClock {
  public:
    void begin(u32 block);
    void barrier();
    void warp_barrier(u32 warp, u32 lanes);
    void fence(u32 rank, bool is_device_wide);
    // An atomic or volatile access of thread `rank`.
    void release(u64 address, u32 rank);
    void acquire(u64 address, u32 rank);

    // Whether what a thread of another block wrote was fenced afterwards, as data is, and not before, as a flag is; and
    // no access to the address itself carries a fence.
    bool is_data(const Stamp& written, u64 address) const;
    bool has_fenced(u32 rank) const { return threads_[rank].fenced_block > block_began_; }
    // Whether an access of before comes before what thread `rank` does now.
    bool comes_before(const Stamp& earlier, u32 rank) const;

    bool is_since_barrier(const Stamp& earlier) const { return earlier.time > last_barrier_; }
    u32 block() const { return block_; }

  private:
    struct ThreadClock {
        u32 fenced_device, fenced_block;
        u32 own_block;        // accesses of this block that an acquire has brought
        Knowledge knowledge;  // of other blocks; null: the block's
        u32 mates[32];        // accesses of the other lanes of the warp
    };
    Knowledge knowledge_of(u32 rank) const;
    void learn(u32 rank, Knowledge from);

    u32 block_ = 0, block_began_ = 0, last_barrier_ = 0;
    // Of any thread: the last fence so far, and the last one before the last barrier.
    u32 last_fence_ = 0, fenced_before_barrier_ = 0;
    Knowledge knowledge_ = nullptr;
    bool is_knowledge_used_ = false;
    u32 informed_count_ = 0;
    u16 informed_[1024];  // threads with knowledge of their own
    ThreadClock threads_[1024];
};

// The time that accesses are stamped with.
u32 time_now();

// A launch of `blocks` blocks begins: everything before comes before it.
void begin_clock(u64 blocks);

}  // namespace cpu_device
