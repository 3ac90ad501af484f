// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"os/exec"
	"runtime"
)

// A Process is a child that [Start] has started.
type Process struct {
	// Child is the child alone, for its number and for signals that are not for
	// what it has started.
	Child *os.Process

	ended chan struct{}
	err   error // of Wait, once ended is closed
}

// Start prepares cmd and starts it, from a thread that is kept until the child has
// ended: on Linux the kernel ends the child together with that thread. Nobody else
// may wait for the child, or read from a pipe of cmd's, which is closed as soon as
// the child has ended; give cmd a file or an [io.Writer].
func Start(cmd *exec.Cmd) (*Process, error) {
	Prepare(cmd)
	p := &Process{ended: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the child
		defer close(p.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.Child = cmd.Process
	return p, nil
}

// Ended returns a channel that is closed when the child has ended and was waited
// for, whatever has become of others of its group.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns how the child has ended, as [exec.Cmd.Wait] says it. It may be asked
// once Ended is closed.
func (p *Process) Err() error { return p.err }

// Kill ends the child's group, as a power failure would, and waits for the child.
// One that has ended before is no error, and then what it left behind lives on: its
// group's number may be another's by now.
func (p *Process) Kill() error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	err := Kill(p.Child)
	<-p.ended
	return err
}

// Pause stops the child's group from running, until Resume.
func (p *Process) Pause() error { return Pause(p.Child) }

// Resume lets a paused group run on.
func (p *Process) Resume() error { return Resume(p.Child) }
