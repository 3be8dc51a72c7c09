#pragma once

// Keeps this process small: memory belongs to jobs. Start-up takes a tenth of a second, the run
// months.

namespace slurmlet {

// One arena, no hoarding (mallopt(3)). Call before the first thread starts.
void tune_allocator();

// Gives back what only starting needed: freed heap, and the pages of code and constants, of the
// program and its libraries, that are mapped now. They stay in the page cache and come back when
// they are touched, a fault without I/O each (madvise(2), MADV_DONTNEED on a file mapping). Call
// once, when the work of every day has begun; any thread.
void release_startup_memory();

}  // namespace slurmlet
