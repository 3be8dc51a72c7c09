"""CPU time of a process by the kernel's own clock."""
import time

_SCHEDULER_CLOCK = 2  # of a whole process, nanoseconds: clock_getcpuclockid(3)


def cpu_seconds(pid):
    """Of all threads of `pid`, those that have ended too. Not of its children."""
    return time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)
