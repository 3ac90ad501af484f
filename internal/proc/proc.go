// SPDX-License-Identifier: Apache-2.0

// Package proc starts processes that do not outlive the process that started them. It signals them
// together with their own children.
//
// The meaning of "together" depends on the system:
//
//   - Unix: a child leads a process group of its own, and signals go to the whole group. A
//     descendant that leaves the group (setsid, or the jobs of an interactive shell) is out of
//     reach.
//   - Linux: in addition, the kernel kills the child itself when the thread that started it ends,
//     but not the child's children. [Start] keeps such a thread. A caller of [Prepare] that starts
//     the child itself has to do the same: it needs a goroutine that is locked to its thread
//     ([runtime.LockOSThread]) and stays until the child has ended.
//   - Windows: a child can only be killed, and alone.
package proc
