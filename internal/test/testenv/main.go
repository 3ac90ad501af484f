// SPDX-License-Identifier: Apache-2.0

// Command testenv runs all the tests: it installs what a bare Debian machine
// lacks, starts every kind of server that the stores support, builds the Java
// programs that they share locks with, and runs go test with the race detector
// against them.
//
//	go run ./internal/test/testenv                    every test of every module here
//	go run ./internal/test/testenv -run Unlock ./...  go test with these flags and packages
//	go run ./internal/test/testenv -- command args    any command against the servers
//	go run ./internal/test/testenv -serve             the servers only, until interrupted
//
// The servers are a standalone one, a Sentinel set (a primary, two replicas,
// three sentinels), a Cluster of three masters, a ZooKeeper, a PostgreSQL and a MariaDB.
// They listen on free ports of 127.0.0.1, write to no other place than a directory of
// their own for the time being, and never outlive the program. The tests find them by
// ASYNCLOCK_REDIS_URL, ASYNCLOCK_SENTINEL_URL, ASYNCLOCK_CLUSTER_URL,
// ASYNCLOCK_ZOOKEEPER, ASYNCLOCK_POSTGRES_URL and ASYNCLOCK_MYSQL_URL, and
// ASYNCLOCK_REQUIRE=1 forbids them to skip. The Java programs are built with Maven, in
// internal/test/interop, if the packages to be tested may need them; ASYNCLOCK_SPRING and
// ASYNCLOCK_ZOOKEEPER_PEER say where they are.
//
// The exit code is that of go test or of the command.
//
// To read the code, begin with run in main.go. setting.go is what it sets up, servers.go the
// servers of that; gotest.go runs the tests, and record.go says what a failure means.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// grace is how long a command may take to end when it is told to.
const grace = 10 * time.Second

const usage = `usage:
  testenv [go test flags] [packages]   test with -race against real servers
                                       (default: every package of every module)
  testenv -- command [args]            run a command against the servers
  testenv -serve                       start the servers, print how to reach them,
                                       stop them when interrupted
A package is an argument that begins with a dot.
`

func main() {
	// The kernel ends a command when the thread that started it ends, so that has to be
	// one that lives as long as the program.
	runtime.LockOSThread()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process around it; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	job, rest, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "testenv: %v\n%s", err, usage)
		return 2
	case job == jobHelp:
		fmt.Fprint(stdout, usage)
		return 0
	}
	ctx, release := untilStopped()
	defer release()
	code, err := work(ctx, job, rest, command{env: os.Environ(), stdout: stdout, stderr: stderr, grace: grace})
	if err != nil {
		fmt.Fprintf(stderr, "testenv: %v\n", err)
		code = max(code, exitCode(ctx))
	}
	return code
}

// work sets up what the job needs, does it and stops all servers. It returns the exit
// code of what was run.
func work(ctx context.Context, job job, args []string, cmd command) (int, error) {
	s, err := setUp(ctx, job, args, cmd.stderr)
	if err != nil {
		return 0, err
	}
	defer s.close()
	fmt.Fprintf(cmd.stderr, "testenv: ready: %s\n", strings.Join(s.exports, " "))
	cmd.env = append(cmd.env, s.exports...)
	code, err := s.perform(ctx, job, args, cmd)
	if names := died(s.targets); len(names) > 0 {
		err = errors.Join(err, fmt.Errorf("ended by themselves: %s", strings.Join(names, ", ")))
	}
	return code, err
}

// exitCode tells a failure from an order to stop.
func exitCode(ctx context.Context) int {
	if s := stopOrder(ctx); s != nil {
		return s.exitCode()
	}
	return 1
}

// perform does what the servers were started for and returns the exit code.
func (s *setting) perform(ctx context.Context, job job, args []string, cmd command) (int, error) {
	switch job {
	case jobServe:
		for _, v := range s.exports {
			name, value, _ := strings.Cut(v, "=")
			fmt.Fprintf(cmd.stdout, "export %s='%s'\n", name, value)
		}
		<-ctx.Done()
		return 0, nil
	case jobCommand:
		return cmd.run(ctx, args[0], args[1:]...)
	default:
		return test(ctx, cmd, s, args)
	}
}

// modules returns the directories of all modules of the repository, the one at its root
// first. go.work names them.
func modules(ctx context.Context) ([]string, error) {
	said, err := output(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for line := range strings.Lines(said) {
		switch path, dir, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case path == modulePath:
			dirs = slices.Insert(dirs, 0, dir)
		case strings.HasPrefix(path, modulePath+"/"):
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 || !strings.Contains("\n"+said, "\n"+modulePath+" ") {
		return nil, errors.New("run me inside the repository")
	}
	return dirs, nil
}
