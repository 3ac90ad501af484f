// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/plain"
)

// unlockHelp is the text of asynclock unlock --help.
const unlockHelp = `unlock takes a key from its holder and gives it to the next waiter. The holder is
notified, and its lease ends. It may still write something before the
notification arrives, so two clients may believe for a while that they hold the
key. Only fencing tokens protect against that. This is why --force is required.

--token says which holder is meant: the one for which 'asynclock inspect' and
'asynclock ls' show that token. If another holds the key by now, nothing is
taken, and unlock exits with 75. So unlock with a token can be repeated, also
after it had no answer. With --token 0 it takes the key from whoever holds it.
That can't be repeated: the next holder may have the key by then.

Without --token, unlock shows the holder and asks, on a terminal. Without a
terminal it refuses, with 64.

A holder that has died needs no unlock, because its TTL frees the key. unlock
exits with 0 even if nobody held the key.

With --json: key, and unlocked, which is false if nobody held it.
`

type unlockOptions struct {
	force bool
	token int64
	named bool // --token was given
}

func (a *app) unlockCommand() *cobra.Command {
	var o unlockOptions
	cmd := &cobra.Command{
		Use:   "unlock KEY --force [--token N]",
		Short: "Take a key from its holder",
		Long:  unlockHelp,
		Example: `  # Take the key from the holder that inspect shows, and from no other.
  asynclock unlock deploy --force --token "$(asynclock inspect --json deploy | jq .token)"`,
		Args:              oneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.named = cmd.Flags().Changed("token")
			switch {
			case !o.force:
				return &exitError{code: exitUsage, err: errors.New("unlock takes the key from a holder that may be at work; " +
					"see 'asynclock inspect' for who it is, and give --force if that is meant")}
			case o.token < 0:
				return &exitError{code: exitUsage, err: errors.New("--token is negative")}
			case !o.named && !a.onTerminal():
				return &exitError{code: exitUsage, err: errors.New("nobody can be asked, as stdin is no terminal: " +
					"give --token N, the holder's token as 'asynclock inspect' shows it, or 0 for whoever holds the key")}
			}
			return a.unlock(cmd.Context(), o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.force, "force", false, "required: confirms that the key is taken from its holder")
	flags.Int64Var(&o.token, "token", 0, "take the key only from the holder with token `N`; 0: whoever holds it")
	a.addJSON(cmd, "")
	if err := cmd.RegisterFlagCompletionFunc("token", a.completeToken); err != nil {
		panic(err) // there is no such flag
	}
	return cmd
}

// unlock takes the key from the holder that is meant.
func (a *app) unlock(ctx context.Context, o unlockOptions, key string) error {
	locks, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer locks.close()
	unlocked := true
	if !o.named {
		o.token, unlocked, err = a.askWhom(ctx, locks, key)
		if err != nil {
			return err
		}
	}
	if unlocked {
		unlocked, err = locks.ForceUnlock(ctx, key, o.token)
	}
	if held := (*asynclock.HeldError)(nil); errors.As(err, &held) {
		return &exitError{code: exitHeld, err: fmt.Errorf("%s, not with token %d; nothing was taken", describeHeld(held), o.token)}
	}
	if err != nil {
		return err
	}
	if a.asJSON {
		return printJSON(a.stdout, unlockJSON{Key: key, Unlocked: unlocked})
	}
	return printUnlocked(a.stdout, key, unlocked)
}

// askWhom shows the holder and asks whether it is meant. It returns the holder's token, and whether
// there is a holder.
func (a *app) askWhom(ctx context.Context, locks *connection, key string) (token int64, held bool, err error) {
	info, err := locks.Inspect(ctx, key)
	if err != nil || !info.Held {
		return 0, false, err
	}
	a.complain("%s", describeHeld(heldBy(&info)))
	answer, err := a.ask(ctx, "Take it from this holder? [y/N] ")
	if err != nil {
		return 0, true, err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return info.Token, true, nil
	}
	return 0, true, &exitError{code: exitHeld, err: errors.New("not confirmed; nothing was taken")}
}

// ask asks a question, and returns the line that answers it. Without one the answer is empty.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.messages, question)
	line := make(chan string, 1)
	go func() { // ends with the line, or with the process
		text, _ := bufio.NewReader(a.stdin).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// onTerminal reports whether somebody can be asked.
func (a *app) onTerminal() bool {
	stdin, isFile := a.stdin.(*os.File)
	return isFile && term.IsTerminal(int(stdin.Fd()))
}

// completeToken completes to the token of the key's holder, once the key is given.
func (a *app) completeToken(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, func(ctx context.Context, locks *connection) ([]cobra.Completion, error) {
		info, err := locks.Inspect(ctx, args[0])
		if err != nil || !info.Held {
			return nil, err
		}
		return []cobra.Completion{cobra.CompletionWithDesc(strconv.FormatInt(info.Token, 10), plain.Text(info.Holder))}, nil
	})
}
