// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store/anystore"
)

// longSleep is longer than any test waits.
const longSleep = 3 * patience

// commands are the first arguments of command.
var commands = []string{"exit", "copy", "env", "touch", "kill-self", "sleep", "stubborn", "signal", "leave", "parent", "job"}

// command is what asynclock runs; its first argument says what that does.
func command(args []string) int {
	switch args[0] {
	case "exit": // CODE
		code, _ := strconv.Atoi(args[1])
		return code
	case "copy": // stdin to stdout, and a word to stderr
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Fprint(os.Stderr, "copied")
	case "env":
		fmt.Printf("%s %s %q", os.Getenv("ASYNCLOCK_KEY"), os.Getenv("ASYNCLOCK_TOKEN"), os.Getenv("ASYNCLOCK_REDIS_URL"))
	case "touch": // FILE
		touch(args[1])
	case "kill-self":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		time.Sleep(longSleep)
	case "sleep": // FILE: create it, then sleep
		touch(args[1])
		time.Sleep(longSleep)
	case "stubborn": // FILE: as sleep, whatever SIGTERM says
		signal.Ignore(syscall.SIGTERM)
		touch(args[1])
		time.Sleep(longSleep)
	case "signal": // FILE NUMBER...: as sleep, and exit with 3 when each of these signals has come
		signals, left := make(chan os.Signal, len(args)), make(map[os.Signal]bool)
		for _, text := range args[2:] {
			number, _ := strconv.Atoi(text)
			signal.Notify(signals, syscall.Signal(number))
			left[syscall.Signal(number)] = true
		}
		touch(args[1])
		for over := time.After(longSleep); len(left) > 0; {
			select {
			case s := <-signals:
				delete(left, s)
			case <-over:
				return 0
			}
		}
		return 3
	case "leave": // FILE: start a stubborn child and leave it to itself
		if err := exec.Command(os.Args[0], "stubborn", args[1]).Start(); err != nil {
			return 1
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(args[1]); err == nil {
				return 0
			}
			if time.Now().After(deadline) {
				return 1
			}
		}
	case "job": // KEY FILE: create the file in a run of the job, then sleep
		return job(args[1], args[2])
	case "parent": // FILE: start a stubborn child, then behave as sleep
		child := exec.Command(os.Args[0], "stubborn", args[1])
		if err := child.Start(); err != nil {
			return 1
		}
		time.Sleep(longSleep)
	}
	return 0
}

// job runs a job once a day, for longer than any test waits.
func job(key, file string) int {
	store, err := anystore.Open(context.Background(), os.Getenv("ASYNCLOCK_REDIS_URL"), anystore.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return 1
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore(), asynclock.WithoutLogger(), asynclock.WithTTL(time.Second), asynclock.WithDescription("billing on app-1, pid 4712"))
	if err != nil {
		return 1
	}
	defer func() { _ = locks.Close(context.Background()) }()
	_, err = once.Do(context.Background(), locks, key, 24*time.Hour, func(context.Context, once.Run) error {
		touch(file)
		time.Sleep(longSleep)
		return nil
	})
	if err != nil {
		return 1
	}
	return 0
}

// touch creates a file with our process id in it.
func touch(path string) {
	unfinished := path + ".unfinished"
	if err := os.WriteFile(unfinished, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		panic(err)
	}
}
