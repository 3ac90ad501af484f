// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// data are those of a database server, in a directory that belongs to its account.
type data struct {
	dir     string
	account account
}

// newData makes the directory. That of a test may be one that others can not read.
func newData() (*data, error) {
	a, err := findAccount("postgres", "mysql", "nobody")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "asynclock-sql-")
	if err != nil {
		return nil, err
	}
	d := &data{dir: dir, account: a}
	if err := d.makeOurs(); err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

func (d *data) makeOurs() error {
	if err := d.account.own(d.dir); err != nil {
		return err
	}
	if err := os.Mkdir(d.temporary(), 0o700); err != nil {
		return err
	}
	return d.account.own(d.temporary())
}

// files is the directory that the server has its data in.
func (d *data) files() string { return filepath.Join(d.dir, "data") }

func (d *data) temporary() string { return filepath.Join(d.dir, "tmp") }

// prepare runs the command that makes the files.
func (d *data) prepare(ctx context.Context, words []string) error {
	cmd := d.command(words)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	process, err := proc.Start(cmd)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = process.Kill() })() // fails only if it has ended
	<-process.Ended()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := process.Err(); err != nil {
		return fmt.Errorf("%s: %w: %s", words[0], err, said.Bytes())
	}
	return nil
}

// command is a program of the account's, which has a place of its own for what is
// temporary. MariaDB, when it starts, removes there the tables of others that run, and
// those crash.
func (d *data) command(words []string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "TMPDIR="+d.temporary())
	proc.Prepare(cmd)
	d.account.run(cmd.SysProcAttr)
	return cmd
}

// remove removes the data of a server that has ended.
func (d *data) remove() { os.RemoveAll(d.dir) }
