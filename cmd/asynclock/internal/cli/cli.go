// SPDX-License-Identifier: Apache-2.0

// Package cli is the command asynclock: its arguments, output and exit codes. The locking is in
// package asynclock.
//
// cli.go has the common parts of all commands. run.go is the most important command. supervise.go
// makes sure that a command under a lock ends soon after the lock is lost.
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// An app is one invocation of the command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	messages       *messages // to stderr, of our own

	url     string // --store
	prefix  string // --prefix
	verbose bool   // --verbose
	asJSON  bool   // --json, of the commands that have it

	// parsed: the command line was valid and the command itself has begun. Errors before that are
	// the caller's.
	parsed bool
}

// Run runs the command with args, which do not include the program's name, and returns its exit
// code. It writes results to stdout and everything else to stderr. A child process may write to
// both at the same time, so unless they are files they must be safe for concurrent use. When ctx
// ends, the command and its child process end.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, messages: &messages{out: stderr}}
	defer a.messages.flush()
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // with nil, cobra would read os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage
	if a.parsed {
		code = exitCode(err)
	}
	text := message(err)
	if text == "" { // the child's exit code is enough
		return code
	}
	a.complain("%s", text)
	if code == exitUsage {
		fmt.Fprintf(a.messages, "Try '%s --help'.\n", command.CommandPath())
	}
	return code
}

// complain writes one line to stderr, with the program's name in front, and does not wait.
func (a *app) complain(format string, args ...any) {
	text := strings.TrimPrefix(fmt.Sprintf(format, args...), "asynclock: ")
	fmt.Fprintf(a.messages, "asynclock: %s\n", text)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "asynclock",
		Short: "Run programs under a distributed lock",
		Long: `asynclock runs programs under a distributed lock in Redis, a database or ZooKeeper.
It also shows such locks and takes them by force. The locks are those of the Go library
github.com/asynclock/asynclock-go: a service that locks a key and a script that
runs under the same key exclude each other.

To see it at work, with nothing installed:

  asynclock demo

The shell completes commands, flags and the keys that are in use, if it is told
how: 'asynclock completion bash --help', or zsh, fish or powershell.
`,
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { a.parsed = true },
		// With 2, "block" would make it suggest "unlock", which takes a key from its holder.
		SuggestionsMinimumDistance: 1,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "store", "", "`URL` that says where the locks are; default $"+urlVariables[0])
	flags.StringVar(&a.url, "redis", "", "--store")
	if err := flags.MarkHidden("redis"); err != nil { // its name from when there were locks in Redis alone
		panic(err) // there is no such flag
	}
	flags.StringVar(&a.prefix, "prefix", "",
		"`NAME` at the beginning of Redis keys and tables; locks under different names don't exclude each other")
	flags.BoolVarP(&a.verbose, "verbose", "v", false,
		"log the lock client's work to stderr")
	root.AddCommand(
		a.demoCommand(), a.workerCommand(),
		a.runCommand(), a.holdCommand(), a.electCommand(), a.guardCommand(),
		a.lsCommand(), a.topCommand(), a.uiCommand(), a.inspectCommand(), a.waitCommand(), a.watchCommand(), a.noteCommand(), a.runsCommand(),
		a.unlockCommand(), a.permitsCommand(),
		a.doctorCommand(), a.whyCommand(), a.graceCommand(), a.benchCommand(), a.migrateCommand(),
		a.versionCommand(), a.packagingCommand(),
		&cobra.Command{Use: "server", Short: "How to say where the locks are", Long: strings.TrimSpace(environmentHelp)},
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: strings.TrimSpace(exitCodesHelp)},
	)
	return root
}
