// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"os/exec"
	"runtime"
)

// A Process is a child that [Start] has started.
type Process struct {
	// Child is the child alone: its number, and the target of signals that are not for its
	// descendants.
	Child *os.Process

	ended chan struct{}
	err   error // of Wait; set once ended is closed
}

// Start prepares cmd and starts it from a thread that is kept until the child has ended. On Linux
// the kernel ends the child together with that thread. Nobody else may wait for the child or read
// from a pipe of cmd, because the pipe is closed as soon as the child has ended. Give cmd a file or
// an [io.Writer].
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

// Ended returns a channel that is closed when the child has ended and was waited for. Other members
// of its group may still run.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns the result of [exec.Cmd.Wait] for the child. Call it only after the channel of Ended
// is closed.
func (p *Process) Err() error { return p.err }

// Kill ends the child's group, as a power failure would, and waits for the child. If the child has
// already ended, this is no error, and its descendants live on, because another group may have its
// number by now.
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

// Pause stops the child's group until Resume.
func (p *Process) Pause() error { return Pause(p.Child) }

// Resume continues a paused group.
func (p *Process) Resume() error { return Resume(p.Child) }
