// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
)

// holdOptions are those of run and hold: how to take a key, and how to keep it.
type holdOptions struct {
	key      string
	holder   string
	note     string
	ttl      time.Duration
	maxHold  time.Duration
	minHold  time.Duration
	wait     waitLimit
	nonblock bool
	conflict conflictCode
	quiet    bool
	part     part
}

func (o *holdOptions) addTo(cmd *cobra.Command) {
	o.wait = forever
	flags := cmd.Flags()
	flags.VarP(&o.wait, "wait", "w", "how long to wait for the lock, in seconds without a unit; 0: not while another has it")
	flags.BoolVarP(&o.nonblock, "nonblock", "n", false, "the same as --wait 0")
	flags.VarP(&o.conflict, "conflict-exit-code", "E", "exit with `N` where it would be 75 or 124: another has the lock")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "don't say that another has the lock, nor what is waited for")
	flags.DurationVar(&o.ttl, "ttl", asynclock.DefaultTTL,
		"how long the server keeps the lock if asynclock dies, and how long a server outage it survives")
	flags.DurationVar(&o.maxHold, "max-hold", 0, "end, as after a loss, when the key was held for this long")
	flags.DurationVar(&o.minHold, "min-hold", 0,
		"hold the key back from everyone for this long after the start, even if the end comes sooner")
	o.part.addTo(cmd)
	flags.StringVar(&o.holder, "holder", "", "description of the holder that others see; default command, host and pid")
	flags.StringVar(&o.note, "note", "", "`TEXT` to leave beside the key, as an address; 'asynclock note' prints it")
}

// check completes the options. It returns an error for flags that contradict each other.
func (o *holdOptions) check(cmd *cobra.Command) error {
	err := o.part.check(o)
	switch {
	case err != nil:
	case o.nonblock && cmd.Flags().Changed("wait"):
		err = errors.New("--nonblock and --wait exclude each other")
	case len(o.note) > asynclock.MaxNoteLen:
		err = fmt.Errorf("--note is longer than %d bytes", asynclock.MaxNoteLen)
	case o.note != "" && (o.part.shared || o.part.permits != 0):
		err = errors.New("--note is for whoever has all of the key: no --shared and no --permits")
	}
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if o.nonblock {
		o.wait = 0
	}
	return nil
}

// settings returns the lock options of the flags.
func (o *holdOptions) settings(command string) []asynclock.ClientOption {
	holder := o.holder
	if holder == "" {
		holder = describeHolder(command)
	}
	options := []asynclock.ClientOption{
		asynclock.WithTTL(o.ttl), asynclock.WithMinHold(o.minHold), asynclock.WithDescription(holder),
	}
	if o.maxHold != 0 {
		options = append(options, asynclock.WithMaxHold(o.maxHold))
	}
	return options
}

// isSilent reports whether the user needs no text of err, because another has the lock.
func (o *holdOptions) isSilent(err error) bool {
	return o.quiet && errors.As(err, new(*asynclock.HeldError))
}

// A conflictCode is what to exit with if another has the lock; it is a flag's value. Its zero value changes no code.
type conflictCode struct {
	given bool
	code  int
}

// String and the methods below it make a conflictCode a pflag.Value.
func (c *conflictCode) String() string {
	if !c.given {
		return ""
	}
	return strconv.Itoa(c.code)
}

// Set parses the flag's text.
func (c *conflictCode) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return errors.New("not a number from 0 to 255")
	}
	*c = conflictCode{true, int(n)}
	return nil
}

// Type names the value in the help text.
func (c *conflictCode) Type() string { return "number" }

// replace gives the error of a key that was not taken the code, if another has the key.
func (c *conflictCode) replace(err error) error {
	if !c.given || err == nil {
		return err
	}
	exit := (*exitError)(nil)
	if errors.As(err, &exit) && exit.held || errors.Is(err, asynclock.ErrHeld) || errors.Is(err, asynclock.ErrQueueFull) {
		return &exitError{code: c.code, err: err}
	}
	return err
}

// describeHolder returns a holder's description of the user and the command, with valid characters
// only.
func describeHolder(command string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, fmt.Sprintf("pid %d@%s %s", os.Getpid(), host, filepath.Base(command)))
	if len(text) > asynclock.MaxDescriptionLen {
		text = strings.ToValidUTF8(text[:asynclock.MaxDescriptionLen], "")
	}
	return text
}
