#include "clock.h"

#include <string.h>

namespace cpu_device {

constexpr u64 knowledge_budget = 256ul << 20;
constexpr u32 sync_variable_count = 1 << 16;

static u32 now = 1;
static u32 launch_began;
static u64 block_count;
static SyncVariable* sync_variables;
static u32 sync_variables_used;
// A bounded store of vectors; when it is used up, blocks are no longer held against one another.
static char* knowledge_store;
static u64 knowledge_used;
static bool is_knowledge_exhausted;
// Of every block: its last fence for the whole device.
static Knowledge last_fences;

u32 time_now() { return now; }

void begin_clock(u64 blocks) {
    launch_began = now++;
    block_count = blocks;
    if (!sync_variables) {
        sync_variables = (SyncVariable*)reserve(sync_variable_count * sizeof(SyncVariable));
        knowledge_store = (char*)reserve(knowledge_budget);
    }
    if (sync_variables_used) memset(sync_variables, 0, sync_variable_count * sizeof(SyncVariable));
    if (knowledge_used) memset(knowledge_store, 0, knowledge_used);
    sync_variables_used = 0;
    knowledge_used = 0;
    is_knowledge_exhausted = false;
    last_fences = nullptr;
}

static Knowledge new_knowledge() {
    const u64 bytes = block_count * sizeof(u32);
    if (knowledge_used + bytes > knowledge_budget) {
        is_knowledge_exhausted = true;
        return nullptr;
    }
    const Knowledge made = (Knowledge)(knowledge_store + knowledge_used);
    knowledge_used += bytes;
    return made;
}

static void join(Knowledge into, const u32* from) {
    for (u64 i = 0; i < block_count; i++)
        if (from[i] > into[i]) into[i] = from[i];
}

// The entry of an address; null where there is none and none is to be made.
static SyncVariable* find(u64 address, bool is_made) {
    u32 at = (u32)(address * 0x9E3779B97F4A7C15ull >> 48) % sync_variable_count;
    for (; sync_variables[at].address; at = (at + 1) % sync_variable_count)
        if (sync_variables[at].address == address) return &sync_variables[at];
    if (!is_made || sync_variables_used > sync_variable_count / 2) return nullptr;
    sync_variables_used++;
    sync_variables[at].address = address;
    return &sync_variables[at];
}

void BlockClock::begin(u32 block) {
    // Knowledge of the launch before lies in a store that was emptied.
    if (block_began_ <= launch_began) knowledge_ = nullptr, is_knowledge_used_ = false;
    block_ = block;
    block_began_ = last_barrier_ = now++;
    last_fence_ = fenced_before_barrier_ = 0;
    if (is_knowledge_used_) memset(knowledge_, 0, block_count * sizeof(u32));
    is_knowledge_used_ = false;
    informed_count_ = 0;
    memset(threads_, 0, sizeof threads_);
}

void BlockClock::barrier() {
    last_barrier_ = now++;
    // What all threads fenced, one of them may release for all.
    fenced_before_barrier_ = last_fence_;
    if (!informed_count_) return;
    if (!knowledge_) knowledge_ = new_knowledge();
    if (!knowledge_) return;
    for (u32 i = 0; i < informed_count_; i++) {
        ThreadClock& thread = threads_[informed_[i]];
        join(knowledge_, thread.knowledge);
        thread.knowledge = nullptr;
    }
    informed_count_ = 0;
    is_knowledge_used_ = true;
}

void BlockClock::warp_barrier(u32 warp, u32 lanes) {
    ThreadClock* const mates = threads_ + warp * 32;
    u32 joined[32] = {};
    u32 own_block = 0, fenced_device = 0, fenced_block = 0;
    Knowledge known = nullptr;
    for (u32 left = lanes; left; left &= left - 1) {
        const ThreadClock& mate = mates[__builtin_ctz(left)];
        for (u32 i = 0; i < 32; i++)
            if (mate.mates[i] > joined[i]) joined[i] = mate.mates[i];
        if (mate.own_block > own_block) own_block = mate.own_block;
        if (mate.fenced_device > fenced_device) fenced_device = mate.fenced_device;
        if (mate.fenced_block > fenced_block) fenced_block = mate.fenced_block;
        if (mate.knowledge) known = mate.knowledge;
    }
    for (u32 left = lanes; left; left &= left - 1) joined[__builtin_ctz(left)] = now;
    for (u32 left = lanes; left; left &= left - 1) {
        const u32 lane = __builtin_ctz(left);
        memcpy(mates[lane].mates, joined, sizeof joined);
        mates[lane].own_block = own_block;
        mates[lane].fenced_device = fenced_device;
        mates[lane].fenced_block = fenced_block;
        if (known) learn(warp * 32 + lane, known);
    }
    now++;
}

void BlockClock::fence(u32 rank, bool is_device_wide) {
    threads_[rank].fenced_block = now;
    if (is_device_wide) {
        threads_[rank].fenced_device = last_fence_ = now;
        if (!last_fences) last_fences = new_knowledge();
        if (last_fences) last_fences[block_] = now;
    }
    now++;
}

void BlockClock::release(u64 address, u32 rank) {
    const ThreadClock& thread = threads_[rank];
    const u32 device = thread.fenced_device > fenced_before_barrier_ ? thread.fenced_device : fenced_before_barrier_;
    const u32 block = thread.fenced_block > device ? thread.fenced_block : device;
    if (!block) return;
    SyncVariable* variable = find(address, true);
    if (!variable) return;
    variable->block = block_;
    variable->block_time = block;
    if (!device) return;
    if (!variable->knowledge) variable->knowledge = new_knowledge();
    if (!variable->knowledge) return;
    const Knowledge own = knowledge_of(rank);
    if (own) join(variable->knowledge, own);
    if (variable->knowledge[block_] < device) variable->knowledge[block_] = device;
}

void BlockClock::acquire(u64 address, u32 rank) {
    if (!sync_variables_used) return;
    const SyncVariable* variable = find(address, false);
    if (!variable) return;
    ThreadClock& thread = threads_[rank];
    const bool is_ours = variable->block == block_ && variable->block_time > block_began_;
    if (is_ours && variable->block_time > thread.own_block) thread.own_block = variable->block_time;
    if (variable->knowledge) learn(rank, variable->knowledge);
}

bool BlockClock::is_data(const Stamp& written, u64 address) const {
    if (written.block == block_ || !last_fences || last_fences[written.block] < written.time) return false;
    const SyncVariable* variable = sync_variables_used ? find(address, false) : nullptr;
    return !variable || !variable->knowledge;
}

Knowledge BlockClock::knowledge_of(u32 rank) const {
    return threads_[rank].knowledge ? threads_[rank].knowledge : is_knowledge_used_ ? knowledge_ : nullptr;
}

void BlockClock::learn(u32 rank, Knowledge from) {
    ThreadClock& thread = threads_[rank];
    if (thread.knowledge == from) return;
    if (!thread.knowledge) {
        thread.knowledge = new_knowledge();
        if (!thread.knowledge) return;
        informed_[informed_count_++] = (u16)rank;
        if (is_knowledge_used_) join(thread.knowledge, knowledge_);
    }
    join(thread.knowledge, from);
}

bool BlockClock::comes_before(const Stamp& earlier, u32 rank) const {
    if (earlier.time <= launch_began) return true;
    const ThreadClock& thread = threads_[rank];
    if (earlier.block != block_) {
        if (is_knowledge_exhausted) return true;
        const Knowledge known = knowledge_of(rank);
        return known && earlier.time <= known[earlier.block];
    }
    if (earlier.rank == rank || earlier.time <= last_barrier_) return true;
    if (earlier.rank / 32 == rank / 32 && earlier.time <= thread.mates[earlier.rank % 32]) return true;
    return earlier.time <= thread.own_block;
}

}  // namespace cpu_device
