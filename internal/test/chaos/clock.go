// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed clock.c.txt
var clockSource string

var errNoClock = errors.New("to set the servers' clock takes a C compiler")

// A wallClock is that of all servers of a site, as if they were on one machine,
// and can be set.
type wallClock struct {
	file    string
	library string
	behind  time.Duration
}

// makeClock makes one in dir.
func makeClock(ctx context.Context, dir string) (*wallClock, error) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return nil, errNoClock
	}
	source := filepath.Join(dir, "clock.c")
	c := &wallClock{file: filepath.Join(dir, "clock"), library: filepath.Join(dir, "clock.so")}
	if err := os.WriteFile(source, []byte(clockSource), 0o600); err != nil {
		return nil, err
	}
	if text, err := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O", "-o", c.library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %w: %s", errNoClock, err, text)
	}
	return c, c.setBack(0)
}

// environment is that of a process that goes by this clock.
func (c *wallClock) environment() []string {
	return []string{"LD_PRELOAD=" + c.library, "NEMESIS_CLOCK=" + c.file}
}

// setBack sets the clock back by d more, at once.
func (c *wallClock) setBack(d time.Duration) error {
	c.behind += d
	file, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(binary.NativeEndian.AppendUint64(nil, uint64(c.behind))) // in place: the process has it in memory
	return errors.Join(err, file.Close())
}
