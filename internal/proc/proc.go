// SPDX-License-Identifier: Apache-2.0

// Package proc starts processes that do not outlive the one that started
// them, and signals them together with what they started in turn.
//
// What "together" can mean differs by system:
//
//   - Unix: a child leads a process group of its own, and signals go to the
//     whole group. A descendant that leaves the group (setsid, or the jobs of an
//     interactive shell) is out of reach.
//   - Linux: besides, the kernel kills the child itself, though not what it
//     started, when the thread that started it ends. [Start] keeps one; who calls
//     [Prepare] and starts the child himself has to do so from a goroutine locked
//     to its thread ([runtime.LockOSThread]) that stays until the child has ended.
//   - Windows: a child can only be killed, and alone.
package proc
