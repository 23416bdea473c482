"""Numbers of the system calls that the filters name, by machine (Linux' `asm/unistd.h` and `asm-generic/unistd.h`)."""

from __future__ import annotations

import platform
from functools import cache

# AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64, as a filter sees the machine.
AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Name, number on x86-64, number on ARM64; a dash where that machine has no such call.
_TABLE = """
read 0 63
write 1 64
poll 7 -
mmap 9 222
munmap 11 215
ioctl 16 29
futex 202 98

socket 41 198
connect 42 203
sendto 44 206
sendmsg 46 211
sendmmsg 307 269

clone 56 220
fork 57 -
vfork 58 -
clone3 435 435
execve 59 221
execveat 322 281
setpgid 109 154
setsid 112 157

kill 62 129
tkill 200 130
tgkill 234 131
rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240
pidfd_send_signal 424 424

ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
kcmp 312 272
pidfd_open 434 434
pidfd_getfd 438 438
process_madvise 440 440
prlimit64 302 261

bpf 321 280
perf_event_open 298 241
userfaultfd 323 282
io_uring_setup 425 425
io_uring_enter 426 426
io_uring_register 427 427

shmget 29 194
shmat 30 196
shmctl 31 195
semget 64 190
semop 65 193
semctl 66 191
semtimedop 220 192
msgget 68 186
msgsnd 69 189
msgrcv 70 188
msgctl 71 187
mq_open 240 180
mq_unlink 241 181

mount 165 40
umount2 166 39
pivot_root 155 41
chroot 161 51
unshare 272 97
setns 308 268
open_tree 428 428
move_mount 429 429
fsopen 430 430
fsconfig 431 431
fsmount 432 432
fspick 433 433
mount_setattr 442 442
open_by_handle_at 304 265
swapon 167 224
swapoff 168 225
reboot 169 142
acct 163 89
quotactl 179 60
quotactl_fd 443 443
syslog 103 116
settimeofday 164 170
clock_settime 227 112
clock_adjtime 305 266
adjtimex 159 171
sethostname 170 161
setdomainname 171 162
init_module 175 105
finit_module 313 273
delete_module 176 106
kexec_load 246 104
kexec_file_load 320 294
iopl 172 -
ioperm 173 -
add_key 248 217
request_key 249 218
keyctl 250 219

chmod 90 -
fchmod 91 52
fchmodat 268 53
fchmodat2 452 452
chown 92 -
lchown 94 -
fchown 93 55
fchownat 260 54
utime 132 -
utimes 235 -
futimesat 261 -
utimensat 280 88
setxattr 188 5
lsetxattr 189 6
fsetxattr 190 7
setxattrat 463 463
removexattr 197 14
lremovexattr 198 15
fremovexattr 199 16
removexattrat 466 466
file_setattr 469 469
"""


@cache
def call_numbers(machine: str = "") -> dict[str, int]:
    """Return the numbers of the named calls on a machine, this one by default; empty where none are known."""
    machine = machine or platform.machine()
    if machine not in AUDIT_ARCHITECTURES:
        return {}
    column = 1 + list(AUDIT_ARCHITECTURES).index(machine)
    rows = [line.split() for line in _TABLE.splitlines() if line]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
