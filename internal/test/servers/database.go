// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A DatabaseKind is a database program.
type DatabaseKind struct {
	Name     string   // for people
	Packages []string // that have it, on Debian
	Variable string   // by which tests find a server
	Driver   string   // of database/sql, which tests that connect import
	System   string   // a database that is there from the start

	// Find finds the server's program.
	Find func() (bin string, err error)

	quit    syscall.Signal                       // see Server
	where   string                               // asks a server for its directory of data
	url     func(addr, database string) string   // names a database of a server, as the driver reads it
	client  func(bin, addr string) []string      // the command that runs an administrator's statement, which comes last
	prepare func(bin, dir string) []string       // the command that makes a directory of data
	serve   func(bin, dir, port string) []string // the command of the server
}

// Databases are those that stores support. A crash of the machine may lose a test's data, but
// a crash of the server must not.
var Databases = []*DatabaseKind{Postgres, MariaDB}

// With returns the same kind with further arguments for the server.
func (k *DatabaseKind) With(arguments ...string) *DatabaseKind {
	other, serve := *k, k.serve
	other.serve = func(bin, dir, port string) []string { return append(serve(bin, dir, port), arguments...) }
	return &other
}

// A Database is a server of one kind, with data of its own. It runs as somebody who is
// not root, which PostgreSQL insists on.
type Database struct {
	Server

	Kind *DatabaseKind
	bin  string
	data *data
}

// Start makes data, starts a server on them and waits until it serves.
func (k *DatabaseKind) Start(ctx context.Context) (*Database, error) {
	bin, err := k.Find()
	if err != nil {
		return nil, err
	}
	data, err := newData()
	if err != nil {
		return nil, err
	}
	err = data.prepare(ctx, k.prepare(bin, data.files()))
	if err != nil {
		data.remove()
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	}
	d, err := onFreePorts(1, func(ports []int) (*Database, error) {
		d := &Database{Server: Server{Name: k.Name, Addr: address(ports[0]), Dir: data.dir, quit: k.quit}, Kind: k, bin: bin, data: data}
		d.check = d.serves
		d.command = func() *exec.Cmd { return data.command(k.serve(bin, data.files(), strconv.Itoa(ports[0]))) }
		return d, d.launch(ctx)
	})
	if err != nil {
		data.remove()
		return nil, err
	}
	return d, nil
}

// URL names a database of the server, as its driver reads it.
func (d *Database) URL(name string) string { return d.Kind.url(d.Addr, name) }

// Create makes a database.
func (d *Database) Create(ctx context.Context, name string) error {
	_, err := d.run(ctx, "CREATE DATABASE "+name)
	return err
}

// serves checks that a server answers, and that its data are ours.
func (d *Database) serves(ctx context.Context) error {
	dir, err := d.run(ctx, d.Kind.where)
	if err != nil {
		return err
	}
	if filepath.Clean(dir) != d.data.files() {
		return fmt.Errorf("the server at %s has its data in %s", d.Addr, dir)
	}
	return nil
}

// run runs a statement as the administrator, and returns its one value. The client is a
// program that comes with the server, so that this module needs no driver.
func (d *Database) run(ctx context.Context, statement string) (string, error) {
	words := append(d.Kind.client(d.bin, d.Addr), statement)
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(words[0]), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// Close ends the server and removes its data.
func (d *Database) Close() {
	d.Kill()
	d.data.remove()
}
