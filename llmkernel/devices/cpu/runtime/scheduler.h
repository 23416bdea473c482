// Runs the threads of one block at a time on the calling OS thread.
//
// Every CUDA thread is a fiber. A fiber runs until it must wait for others (a barrier or a warp collective);
// one that ends hands its stack to a thread that has not begun, so a kernel without barriers never switches.
#pragma once

#include "../include/cpu_device/abi.h"
#include "fiber.h"

namespace cpu_device {

enum class Order : u32 { forward, reverse, random };

// One kernel launch, as all workers see it.
struct Launch {
    void (*call)(void** arguments);
    void** arguments;
    dim3 grid;
    dim3 block;
    u32 shared_bytes;
    u64 blocks;
    Order order;
    u64 seed;
};

struct Fiber : Thread {
    enum class State : u32 { fresh, started };
    State state;
    u32 stack;
    void* stack_pointer;
};

// What a lane asked of a warp collective.
struct Request {
    u32 mask;
    Collective operation;
    u64 value;
    u32 source;
    u32 line;
};

struct Warp {
    u32 alive;     // lanes that have not returned
    u32 runnable;  // lanes that wait for nothing
    u32 arrived;   // lanes that wait in a collective
    u32 polling;   // lanes that wait in __activemask
    Request request[32];
    u64 result[32];
    u64 gathered[32];
};

class Scheduler {
  public:
    explicit Scheduler(u32 worker);

    // Run blocks of `launch` until none is left.
    void run(const Launch& launch);

    void barrier(u32 line);
    int vote(Vote kind, int predicate, u32 line);
    u64 collective(const Request& request);
    u32 active_mask(u32 line);
    void yield();
    const u64* gathered() const { return warps_[current_->warp].gathered; }

  private:
    static void fiber_main();
    bool begin_block();
    void end_thread();
    void reset_threads();

    int next();
    u32 pick(u32 set);
    u32 pick_in_order(u32 set);
    void resume(int rank);
    void park();
    void wake(Warp& warp, u32 lanes);
    void sleep(Warp& warp, u32 lanes);

    void arrive(u32 line);
    void release_barrier();
    bool try_complete(Warp& warp, u32 mask);
    void complete(Warp& warp, u32 lanes);
    void resolve_active_mask(Warp& warp);
    [[noreturn]] void report_deadlock();
    [[noreturn]] void report_divergence(const Request& one, const Request& other);

    const u32 worker_;
    const Launch* launch_ = nullptr;
    Fiber* current_ = nullptr;
    void* main_stack_pointer_ = nullptr;
    u32 thread_count_ = 0, warp_count_ = 0, alive_ = 0;
    u32 runnable_warps_ = 0;
    u32 waiting_ = 0, barrier_line_ = 0;  // __syncthreads
    u32 votes_ = 0, vote_result_ = 0;
    u32 free_count_ = 0;
    u64 random_ = 0;
    u32 free_stacks_[stacks_per_worker];
    Warp warps_[32];
    Fiber fibers_[max_threads];
};

}  // namespace cpu_device
