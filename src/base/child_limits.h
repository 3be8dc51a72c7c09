#pragma once

// What child processes of this program may not do, whoever starts them: they run as our own user,
// and programs of Slurm load plugins.
//
// confine_thread() takes the rights away from one thread for good, without another process: what it
// starts inherits that, and the other threads keep theirs. A user other than root loses
// - ambient capabilities, so that what it starts has none (the unit's drop-in for config drives
// gives
//   some), and setuid programs (PR_SET_NO_NEW_PRIVS);
// - with Landlock (landlock(7), Linux 5.13), where the kernel has it, the files that
//   hide_from_children() names, and the right to trace or read processes outside, us among
//   them.
// Root's children stay root's: nothing would hold them.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace slurmlet {

// Files and directories, also of names that are not there yet, besides those hidden before, until
// the process ends: one that is out of use may be in use again, or still be a secret. Thread-safe;
// holds for children that are started afterwards.
void hide_from_children(const std::vector<std::filesystem::path>& secrets);

// 0, or the errno where the kernel has Landlock and the files could not be hidden: start nothing
// then. Looks at the directories that lead to them, and so may hang where these do not answer.
int confine_thread();

// Libraries open descriptors that would stay open in a child. For the calling process, just before
// a child is started: posix_spawn closes them itself only where glibc is 2.34 or newer.
void keep_descriptors_from_children();

// Why children can reach those files; "" where they cannot.
std::string children_not_confined();

// No process of our own user may trace this one, read its memory or its environment (prctl(2),
// PR_SET_DUMPABLE).
void protect_own_memory();

// The names of the environment that children inherit: nothing that is for this program alone.
bool inherited_by_children(std::string_view name);

}  // namespace slurmlet
