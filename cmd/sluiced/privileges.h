// Privileges: what the daemon gives up by itself, whoever starts it and however. deploy/sluiced.service takes away
// more.
#pragma once

namespace sluiced {

// Before threads are made. Nothing that it or its children run gains rights from a file (no_new_privs). Without
// `core_dumps` also no core file and no debugger of the same user: memory has keys and other people's messages. What
// the kernel refuses is left as it is.
void DropPrivileges(bool core_dumps);
// True if it could do what no proxy needs to do.
bool IsRoot();

}  // namespace sluiced
