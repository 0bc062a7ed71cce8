/* cpu_quota.h - how many CPUs' worth of time the kernel leaves this process: the quotas of its cgroups. */
#ifndef GATEWAY_BASE_CPU_QUOTA_H
#define GATEWAY_BASE_CPU_QUOTA_H

#include <stdint.h>

/* The least quota among a process's own cgroup and those above it, as far as they can be seen, rounded up to whole
 * CPUs, at least 1; UINT32_MAX where there is none. `membership` is a file like /proc/self/cgroup, `tree` where the
 * hierarchies are mounted (cgroups(7): /sys/fs/cgroup): version 2 there (cpu.max: Linux, admin-guide/cgroup-v2, CPU
 * interface files), version 1 at `tree`/cpu (cpu.cfs_quota_us: scheduler/sched-bwc); others are not looked for. In a
 * container `tree` is mostly its own cgroup, whatever path `membership` has. */
uint32_t cpu_quota(const char *membership, const char *tree);

#endif
