#include "scheduler.h"

#include <string.h>

#include "checked/checker.h"
#include "report.h"
#include "workers.h"

namespace cpu_device {

static __thread Scheduler* scheduler;

Scheduler::Scheduler(u32 worker) : worker_(worker) { scheduler = this; }

// ---- threads and blocks ----

void Scheduler::run(const Launch& launch) {
    launch_ = &launch;
    random_ = launch.seed * 0x9E3779B97F4A7C15ull + worker_ + 1;
    cpu_device_block.block_dim = launch.block;
    cpu_device_block.grid_dim = launch.grid;
    cpu_device_block.shared_bytes = launch.shared_bytes;
    thread_count_ = launch.block.x * launch.block.y * launch.block.z;
    warp_count_ = (thread_count_ + 31) / 32;
    free_count_ = 0;
    for (u32 i = 0; i <= thread_count_; i++) free_stacks_[free_count_++] = thread_count_ - i;
    for (u32 rank = 0; rank < thread_count_; rank++) {
        Fiber& fiber = fibers_[rank];
        const dim3& block = launch.block;
        fiber.index = {rank % block.x, rank / block.x % block.y, rank / block.x / block.y};
        fiber.rank = rank;
        fiber.lane = rank % 32;
        fiber.warp = rank / 32;
    }
    if (!begin_block()) return;
    // The first thread runs on a stack of its own; everything comes back here when no block is left.
    Fiber& first = fibers_[next()];
    first.state = Fiber::State::started;
    first.stack = free_stacks_[--free_count_];
    current_ = &first;
    cpu_device_thread = &first;
    cpu_device_switch(&main_stack_pointer_, new_stack(worker_, first.stack, fiber_main));
    cpu_device_thread = nullptr;
}

bool Scheduler::begin_block() {
    u64 number;
    if (!take_block(&number)) return false;
    const dim3& grid = launch_->grid;
    cpu_device_block.index = {(u32)(number % grid.x), (u32)(number / grid.x % grid.y),
                              (u32)(number / grid.x / grid.y)};
    check_block(number);
    alive_ = thread_count_;
    waiting_ = 0;
    votes_ = 0;
    runnable_warps_ = 0;
    for (u32 i = 0; i < warp_count_; i++) {
        const u32 lanes = thread_count_ - i * 32;
        Warp& warp = warps_[i];
        warp.alive = lanes >= 32 ? ~0u : (1u << lanes) - 1;
        warp.runnable = warp.arrived = warp.polling = 0;
        wake(warp, warp.alive);
    }
    for (u32 rank = 0; rank < thread_count_; rank++) fibers_[rank].state = Fiber::State::fresh;
    return true;
}

void Scheduler::fiber_main() {
    for (;;) {
        scheduler->launch_->call(scheduler->launch_->arguments);
        scheduler->end_thread();
    }
}

// The current thread has returned. Comes back when this stack was given to a thread that has not begun.
void Scheduler::end_thread() {
    check_pause();
    const u32 stack = current_->stack;
    Warp& warp = warps_[current_->warp];
    const u32 bit = 1u << current_->lane;
    warp.alive &= ~bit;
    sleep(warp, bit);
    alive_--;
    if (alive_ == 0) {
        check_shared_overrun();
        if (!begin_block()) {
            void* unused;
            cpu_device_switch(&unused, main_stack_pointer_);
        }
    } else {
        // Those who wait do not wait for a thread that is gone.
        if (waiting_ == alive_) release_barrier();
        for (u32 left = warp.arrived; left; left &= left - 1)
            if (warp.arrived & left & -left) try_complete(warp, warp.request[__builtin_ctz(left)].mask);
        if (!warp.runnable && warp.polling) resolve_active_mask(warp);
    }
    const int rank = next();
    if (rank < 0) report_deadlock();
    Fiber& fiber = fibers_[rank];
    if (fiber.state == Fiber::State::fresh) {
        fiber.state = Fiber::State::started;
        fiber.stack = stack;
        current_ = &fiber;
        cpu_device_thread = &fiber;
        return;
    }
    free_stacks_[free_count_++] = stack;
    current_ = &fiber;
    cpu_device_thread = &fiber;
    void* unused;
    cpu_device_switch(&unused, fiber.stack_pointer);
}

// ---- who runs next ----

// One member of a non-empty set of bits, by the launch's order.
inline u32 Scheduler::pick(u32 set) {
    if (__builtin_expect(launch_->order == Order::forward, 1)) return __builtin_ctz(set);
    return pick_in_order(set);
}

u32 Scheduler::pick_in_order(u32 set) {
    if (launch_->order == Order::reverse) return 31 - __builtin_clz(set);
    // xorshift64*
    random_ ^= random_ >> 12, random_ ^= random_ << 25, random_ ^= random_ >> 27;
    u32 skip = (u32)((random_ * 0x2545F4914F6CDD1Dull) >> 40) % __builtin_popcount(set);
    for (; skip; skip--) set &= set - 1;
    return __builtin_ctz(set);
}

inline int Scheduler::next() {
    if (!runnable_warps_) return -1;
    const u32 warp = pick(runnable_warps_);
    return warp * 32 + pick(warps_[warp].runnable);
}

inline void Scheduler::wake(Warp& warp, u32 lanes) {
    warp.runnable |= lanes;
    if (warp.runnable) runnable_warps_ |= 1u << (&warp - warps_);
}

inline void Scheduler::sleep(Warp& warp, u32 lanes) {
    warp.runnable &= ~lanes;
    if (!warp.runnable) runnable_warps_ &= ~(1u << (&warp - warps_));
}

inline void Scheduler::resume(int rank) {
    Fiber* from = current_;
    Fiber* to = &fibers_[rank];
    if (to == from) return;
    if (to->state == Fiber::State::fresh) {
        to->state = Fiber::State::started;
        to->stack = free_stacks_[--free_count_];
        to->stack_pointer = new_stack(worker_, to->stack, fiber_main);
    }
    current_ = to;
    cpu_device_thread = to;
    cpu_device_switch(&from->stack_pointer, to->stack_pointer);
}

// The current thread waits; come back when it was woken and chosen.
void Scheduler::park() {
    Warp& warp = warps_[current_->warp];
    sleep(warp, 1u << current_->lane);
    if (!warp.runnable && warp.polling) resolve_active_mask(warp);
    const int rank = next();
    if (rank < 0) report_deadlock();
    resume(rank);
}

void Scheduler::yield() {
    check_pause();
    let_others_run();
    // In rotation, so that two threads that spin cannot keep a third from running.
    for (u32 step = 1; step < thread_count_; step++) {
        const u32 rank = (current_->rank + step) % thread_count_;
        if (warps_[rank / 32].runnable >> (rank % 32) & 1) return resume(rank);
    }
}

// ---- __syncthreads ----

void Scheduler::arrive(u32 line) {
    if (waiting_ == 0) {
        barrier_line_ = line;
    } else if (barrier_line_ != line) {
        Report report = {};
        report.type = ReportType::divergent_barrier;
        report.line = barrier_line_;
        report.other_line = line;
        fail(report);
    }
    waiting_++;
}

void Scheduler::release_barrier() {
    check_barrier();
    for (u32 i = 0; i < warp_count_ && alive_ < thread_count_; i++) {
        const u32 lanes = thread_count_ - i * 32 < 32 ? thread_count_ - i * 32 : 32;
        const u32 alive = (u32)__builtin_popcount(warps_[i].alive);
        if (alive && alive < lanes) check_partial_warp(barrier_line_, alive, lanes - alive);
    }
    waiting_ = 0;
    vote_result_ = votes_;
    votes_ = 0;
    for (u32 i = 0; i < warp_count_; i++) wake(warps_[i], warps_[i].alive);
}

void Scheduler::barrier(u32 line) {
    check_pause();
    arrive(line);
    if (waiting_ < alive_) return park();
    release_barrier();
    // The last to arrive may run on: only an explicit order has it queue again.
    if (launch_->order != Order::forward) resume(next());
}

int Scheduler::vote(Vote kind, int predicate, u32 line) {
    votes_ += predicate != 0;
    barrier(line);
    if (kind == Vote::count) return vote_result_;
    return kind == Vote::all ? vote_result_ == thread_count_ : vote_result_ != 0;
}

// ---- reports ----

void Scheduler::report_deadlock() {
    Report report = {};
    report.type = ReportType::deadlock;
    report.at_barrier = waiting_;
    report.line = waiting_ ? barrier_line_ : 0;
    report.finished = thread_count_ - alive_;
    for (u32 i = 0; i < warp_count_; i++) {
        const u32 arrived = warps_[i].arrived;
        if (arrived && !report.at_collective) report.other_line = warps_[i].request[__builtin_ctz(arrived)].line;
        report.at_collective += __builtin_popcount(arrived);
    }
    fail(report);
}

void Scheduler::report_divergence(const Request& one, const Request& other) {
    Report report = {};
    report.type = ReportType::divergent_collective;
    report.line = one.line;
    report.other_line = other.line;
    fail(report);
}

}  // namespace cpu_device

extern "C" {
using namespace cpu_device;

void cpu_device_barrier(unsigned line) { scheduler->barrier(line); }

int cpu_device_barrier_vote(Vote vote, int predicate, unsigned line) {
    return scheduler->vote(vote, predicate, line);
}

u64 cpu_device_collective(u32 mask, Collective operation, u64 value, u32 source, unsigned line) {
    return scheduler->collective({mask, operation, value, source, line});
}

u32 cpu_device_active_mask(unsigned line) { return scheduler->active_mask(line); }

const u64* cpu_device_gathered(void) { return scheduler->gathered(); }

void cpu_device_yield(void) { scheduler->yield(); }
}
