// Warp collectives: a lane leaves its request; the last one to arrive computes the result of every lane.
#include "checked/checker.h"
#include "report.h"
#include "scheduler.h"

namespace cpu_device {

// What a shuffle yields from a lane that takes no part: CUDA leaves it undefined, so it is made conspicuous
// (a NaN in every floating-point type, and a large integer).
constexpr u64 undefined_value = 0x7FFD7FFD7FFD7FFDull;

u64 Scheduler::collective(const Request& request) {
    check_pause();
    Warp& warp = warps_[current_->warp];
    const u32 lane = current_->lane;
    if (!(request.mask >> lane & 1)) {
        Report report = {};
        report.type = ReportType::lane_outside_mask;
        report.line = request.line;
        report.address = request.mask;
        fail(report);
    }
    warp.request[lane] = request;
    warp.arrived |= 1u << lane;
    if (!try_complete(warp, request.mask))
        park();
    else if (launch_->order != Order::forward)
        resume(next());
    return warp.result[lane];
}

// Complete the collective of `mask` if all of its lanes that are still alive have arrived.
bool Scheduler::try_complete(Warp& warp, u32 mask) {
    const u32 lanes = mask & warp.alive;
    if ((warp.arrived & lanes) != lanes) return false;
    const Request& first = warp.request[__builtin_ctz(lanes)];
    for (u32 left = lanes; left; left &= left - 1) {
        const Request& request = warp.request[__builtin_ctz(left)];
        if (request.mask != mask) return false;  // it waits for others first
        if (request.operation != first.operation) report_divergence(first, request);
    }
    complete(warp, lanes);
    warp.arrived &= ~lanes;
    wake(warp, lanes);
    return true;
}

static u32 reduce(Collective operation, u32 a, u32 b) {
    switch (operation) {
        case Collective::add:
            return a + b;
        case Collective::min_signed:
            return (int)a < (int)b ? a : b;
        case Collective::max_signed:
            return (int)a > (int)b ? a : b;
        case Collective::min_unsigned:
            return a < b ? a : b;
        case Collective::max_unsigned:
            return a > b ? a : b;
        case Collective::bit_and:
            return a & b;
        case Collective::bit_or:
            return a | b;
        default:
            return a ^ b;
    }
}

static u32 lanes_with(const Warp& warp, u32 lanes, u64 value) {
    u32 equal = 0;
    for (u32 left = lanes; left; left &= left - 1) {
        const u32 lane = __builtin_ctz(left);
        if (warp.request[lane].value == value) equal |= 1u << lane;
    }
    return equal;
}

void Scheduler::complete(Warp& warp, u32 lanes) {
    const u32 first = __builtin_ctz(lanes);
    const Collective operation = warp.request[first].operation;
    u64 same = 0;  // the result of operations that give every lane the same
    switch (operation) {
        case Collective::sync:
            // The others do not order memory: CUDA says so of shuffles and votes.
            check_warp_barrier((u32)(&warp - warps_), lanes);
            return;
        case Collective::shuffle:
            for (u32 left = lanes; left; left &= left - 1) {
                const u32 lane = __builtin_ctz(left), source = warp.request[lane].source;
                warp.result[lane] = lanes >> source & 1 ? warp.request[source].value : undefined_value;
            }
            return;
        case Collective::match_any:
            for (u32 left = lanes; left; left &= left - 1) {
                const u32 lane = __builtin_ctz(left);
                warp.result[lane] = lanes_with(warp, lanes, warp.request[lane].value);
            }
            return;
        case Collective::gather:
            for (u32 left = lanes; left; left &= left - 1) {
                const u32 lane = __builtin_ctz(left);
                warp.gathered[lane] = warp.request[lane].value;
            }
            return;
        case Collective::ballot:
            same = lanes_with(warp, lanes, 1);
            break;
        case Collective::match_all:
            same = lanes_with(warp, lanes, warp.request[first].value) == lanes ? lanes : 0;
            break;
        default:
            same = warp.request[first].value;
            for (u32 left = lanes & (lanes - 1); left; left &= left - 1)
                same = reduce(operation, (u32)same, (u32)warp.request[__builtin_ctz(left)].value);
    }
    for (u32 left = lanes; left; left &= left - 1) warp.result[__builtin_ctz(left)] = same;
}

// Which lanes are converged is not known here; the most that could be is: those of the warp that ask at the
// same line before anyone of it waits elsewhere.
u32 Scheduler::active_mask(u32 line) {
    Warp& warp = warps_[current_->warp];
    warp.request[current_->lane].line = line;
    warp.polling |= 1u << current_->lane;
    park();
    return (u32)warp.result[current_->lane];
}

void Scheduler::resolve_active_mask(Warp& warp) {
    const u32 line = warp.request[__builtin_ctz(warp.polling)].line;
    u32 mask = 0;
    for (u32 left = warp.polling; left; left &= left - 1) {
        const u32 lane = __builtin_ctz(left);
        if (warp.request[lane].line == line) mask |= 1u << lane;
    }
    for (u32 left = mask; left; left &= left - 1) warp.result[__builtin_ctz(left)] = mask;
    warp.polling &= ~mask;
    wake(warp, mask);
}

}  // namespace cpu_device
