// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"runtime"

	"github.com/asynclock/asynclock-go/internal/childproc"
)

// A process is a child of ours. It does not outlive us.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error         // how, once ended is closed
}

func start(cmd *exec.Cmd) (*process, error) {
	childproc.Prepare(cmd)
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the process
		defer close(p.ended)
		runtime.LockOSThread() // the kernel ends the process when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	return p, <-started
}

// kill ends it as a power failure would.
func (p *process) kill() error {
	select {
	case <-p.ended: // its number may be another's by now
		return nil
	default:
	}
	err := childproc.Kill(p.cmd.Process)
	<-p.ended
	return err
}

func (p *process) pause() error  { return childproc.Pause(p.cmd.Process) }
func (p *process) resume() error { return childproc.Resume(p.cmd.Process) }
