// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/board"
)

// listed are locks as a test says.
type listed struct {
	infos  []asynclock.Info
	err    error
	unread string // a key that can't be read
	lost   error  // of Inspect
	forced []string
}

func (l *listed) List(context.Context, string) iter.Seq2[asynclock.Info, error] {
	return func(yield func(asynclock.Info, error) bool) {
		for _, info := range l.infos {
			if !yield(info, nil) {
				return
			}
		}
		if l.unread != "" && !yield(asynclock.Info{Key: l.unread}, asynclock.ErrForeignData) {
			return
		}
		if l.err != nil {
			yield(asynclock.Info{}, l.err)
		}
	}
}

func (l *listed) Inspect(_ context.Context, key string) (asynclock.Info, error) {
	for _, info := range l.infos {
		if info.Key == key && l.lost == nil {
			info.Queue = []asynclock.WaiterInfo{{Holder: "the next one", Age: time.Second}}
			return info, nil
		}
	}
	return asynclock.Info{Key: key}, l.lost
}

func (l *listed) ForceUnlock(_ context.Context, key string, token int64) (bool, error) {
	l.forced = append(l.forced, fmt.Sprint(key, " ", token))
	return l.err == nil, l.err
}

func taken(key, holder string, token int64, waiters int) asynclock.Info {
	return asynclock.Info{Key: key, Held: true, Holder: holder, Token: token, Remaining: 20 * time.Second, Waiters: waiters}
}

// A user is one in front of top, in virtual time.
type user struct {
	t     *testing.T
	locks *listed
	top   *top
}

func sitDown(t *testing.T, locks *listed) *user {
	t.Helper()
	u := &user{t, locks, newTop(t.Context(), locks, "")}
	u.top.Update(tea.WindowSizeMsg{Width: 90, Height: 8})
	u.look()
	return u
}

// look lets top take its next sample.
func (u *user) look() { u.top.Update(u.top.look()) }

// press presses keys, and waits for what they cause.
func (u *user) press(keys ...string) {
	u.t.Helper()
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "up": tea.KeyUp, "end": tea.KeyEnd, "home": tea.KeyHome, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace}
	for _, name := range keys {
		key := tea.KeyPressMsg{Code: special[name]}
		if key.Code == 0 {
			key = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		if _, cmd := u.top.Update(key); cmd != nil {
			u.top.Update(cmd())
		}
	}
}

// sees checks that the screen has each text, in this order, and returns it.
func (u *user) sees(texts ...string) {
	u.t.Helper()
	screen := u.top.View().Content
	rest := screen
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			u.t.Fatalf("got %q, want %q in this order", screen, texts)
		}
		rest = after
	}
}

func TestTopTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sitDown(t, &listed{infos: []asynclock.Info{
			taken("b", "bea", 2, 7), taken("a", "al", 1, 0),
			{Key: "c\x1b", Held: true, Holder: "2 readers", Mode: asynclock.Shared, Remaining: -1},
			{Key: "d", Waiters: 1},
		}})
		u.sees("3 keys held, 8 waiting", "*KEY", "\n\x1b[7ma  ", "exclusive", "al", "0s+", "20.0s", " 0 ", "-", "\nb", `"c\x1b"`, "shared", "2 readers", "none", "\nd", "-", "-", " 1 ")
		time.Sleep(2 * time.Second)
		u.locks.infos[0].Token = 3
		u.look()
		u.sees("\x1b[7ma  ", "2s+", "0.0", "\nb", "0s ", "0.5") // one grant in two seconds
		u.press("s", "s", "s", "s", "s")
		u.sees("*WAITING", "\nb", "\nd")
		u.press("r")
		u.sees("*WAITING", "\nb") // the chosen one is first, in inverse
		u.press("/", "b", "e", "backspace", "enter")
		u.sees(`1 keys with "b"`, "\x1b[7mb")
		u.press("esc", "s", "s", "r")
		u.sees("*KEY", "\x1b[7mb") // a is not chosen, b was
		u.locks.err = errors.New("no\x1b answer\n\tof 127.0.0.1")
		u.locks.infos[0].Waiters = 8 // some of the list may have come
		u.look()
		u.sees("3 keys held, 9 waiting", "the list is old: no? answer")
		if lines := strings.Count(u.top.View().Content, "\n"); lines >= 8 {
			t.Errorf("got %d lines, want as many as the screen has", lines+1)
		}
		time.Sleep(board.RateWindow)
		u.locks.infos, u.locks.err = u.locks.infos[1:2], nil
		u.look()
		u.sees("1 keys held, 0 waiting", "\x1b[7ma", "enter show")
	})
}

func TestTopScrolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := &listed{}
		for i := range 12 {
			locks.infos = append(locks.infos, taken(fmt.Sprintf("key%02d", i), "h", int64(i+1), 0))
		}
		u := sitDown(t, locks)
		for _, step := range []struct{ press, first, chosen string }{
			{"down", "key00", "key01"},
			{"pgdown", "key02", "key06"},
			{"pgdown", "key07", "key11"},
			{"down", "key07", "key11"},
			{"up", "key07", "key10"},
			{"pgup", "key05", "key05"},
			{"home", "key00", "key00"},
			{"up", "key00", "key00"},
			{"end", "key07", "key11"},
		} {
			u.press(step.press)
			if u.top.shown[u.top.first].Key != step.first || u.top.chosen != step.chosen {
				t.Errorf("after %s: got %s on top and %s chosen, want %+v", step.press, u.top.shown[u.top.first].Key, u.top.chosen, step)
			}
		}
		u.sees("key07", "\x1b[7mkey11")
		u.top.Update(tea.WindowSizeMsg{Width: 90, Height: 5})
		u.sees("key10", "\x1b[7mkey11")
		u.top.Update(tea.WindowSizeMsg{Width: 90, Height: 8})
		locks.infos = locks.infos[:3] // the chosen key is gone
		u.look()
		u.sees("key00", "\x1b[7mkey02")
		for width := range 30 { // no size is too small
			u.top.Update(tea.WindowSizeMsg{Width: width, Height: width % 5})
			u.press("down", "up")
			if lines := strings.Count(u.top.View().Content, "\n") + 1; lines > max(1, width%5) {
				t.Errorf("got %d lines of %d", lines, width%5)
			}
		}
	})
}

func TestTopShowsAKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sitDown(t, &listed{infos: []asynclock.Info{taken("a", "al", 1, 1), taken("b", "bea", 2, 0)}})
		u.press("enter")
		u.sees("key", "a", "holder", "al", "token", "1", "1.", "the next one, for 1.0s", "enter back")
		u.locks.infos = u.locks.infos[1:] // it is shown on, as free
		u.look()
		u.press("enter", "enter")
		u.sees("key", "b", "holder", "bea")
		u.press("esc")
		u.sees("*KEY", "\x1b[7mb")
	})
}

// An error of the list and one of the shown key are two things. The second is said of that key alone.
func TestTopErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sitDown(t, &listed{infos: []asynclock.Info{taken("a", "al", 1, 1)}, unread: "b", lost: errors.New("lost")})
		u.sees("1 keys held, 1 waiting, 1 can't be read")
		u.press("enter")
		u.sees("the key is as it was: lost")
		u.look()
		u.top.Update(topInspected{"b", asynclock.Info{}, errors.New("late")})
		u.sees("the key is as it was: lost")
		u.press("u", "esc")
		u.sees("enter show")
		u.top.press(tea.KeyPressMsg{Code: tea.KeyEnter})
		u.sees("enter back") // the answer is to come
		u.press("esc")
		u.locks.lost, u.locks.err = nil, errors.New("gone")
		u.look()
		u.press("enter")
		u.sees("the next one", "the list is old: gone")
	})
}

// A server that is silent for a while sends no error. The list says how old it is, each second.
func TestTopSaysHowOldTheListIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sitDown(t, &listed{infos: []asynclock.Info{taken("a", "al", 1, 1)}})
		time.Sleep(3 * time.Second)
		if _, again := u.top.Update(topTick{}); again == nil {
			t.Error("got no further tick, want one each second")
		}
		u.sees("1 keys held, 1 waiting (3s ago)")
		u.look()
		u.sees("1 keys held, 1 waiting\n")
	})
}

// Keys that were there before the first whole list may have been there before top.
func TestTopBeginsInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sitDown(t, &listed{err: errors.New("gone")})
		u.locks.infos = []asynclock.Info{taken("a", "al", 1, 0)}
		u.look()
		u.locks.infos, u.locks.err = append(u.locks.infos, taken("b", "bea", 2, 0)), nil
		time.Sleep(time.Second)
		u.look()
		u.sees("\x1b[7ma", "1s+", "-", "\nb", "0s+", "-")
		u.locks.infos = append(u.locks.infos, taken("c", "cleo", 3, 0))
		time.Sleep(time.Second)
		u.look()
		u.sees("\nc", "0s ", "1.0")
	})
}

// Only the typed key is taken from its holder, and only from the one that was shown.
func TestTopForces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sitDown(t, &listed{infos: []asynclock.Info{taken("ab", "al", 17, 1), {Key: "free", Waiters: 1}}})
		forced := func(want string) {
			t.Helper()
			if got := strings.Join(u.locks.forced, ", "); got != want {
				t.Errorf("forced %q, want %q", got, want)
			}
		}
		u.press("u")
		u.sees("Take ab from al?", "type the key, or esc: ")
		u.press("a", "enter")
		u.sees("that is another key; nothing was taken")
		u.press("u", "a", "b", "esc", "enter", "esc")
		forced("")
		u.press("u", "a", "b")
		u.locks.infos[0].Token = 18 // it passes on meanwhile
		u.look()
		u.press("enter")
		forced("ab 17")
		u.sees("ab was taken from its holder")
		for err, want := range map[error]string{
			&asynclock.HeldError{Key: "ab", Holder: "another"}: `"ab" is held by another (0.0s of its TTL left); nothing was taken`,
			asynclock.ErrInvalidOption:                         "invalid option; nothing was taken",
			asynclock.ErrOutcomeUnknown:                        "outcome unknown; it may have been taken",
			context.DeadlineExceeded:                           "deadline exceeded; it may have been taken",
		} {
			u.locks.err = err
			u.press("u")
			u.top.Update(tea.PasteMsg{Content: "ab"})
			u.press("enter")
			u.sees(want)
		}
		u.locks.err = nil
		u.press("down", "u")
		u.sees("nobody holds it")
		forced("ab 17, ab 18, ab 18, ab 18, ab 18")
	})
}

// A holder without a token, as of Java, is known by its description.
func TestTopForcesAHolderWithoutAToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sitDown(t, &listed{infos: []asynclock.Info{taken("k\x01", "java", 0, 0)}})
		u.press("u")
		u.sees("from whoever holds it then, now java?")
		u.top.Update(tea.PasteMsg{Content: `"k\x01"`}) // nobody can type it as it is
		u.locks.infos[0].Holder = "another java"
		u.press("enter")
		u.sees("another holds it by now; nothing was taken")
		u.look()
		u.press("u")
		u.top.Update(tea.PasteMsg{Content: "k\x01"})
		u.press("enter")
		u.sees("was taken from its holder")
		u.press("u")
		u.top.Update(tea.PasteMsg{Content: "k\x01"})
		u.locks.infos[0].Held = false // the next holder is nobody's target
		u.press("enter")
		u.sees("nobody held it")
		if got := strings.Join(u.locks.forced, ", "); got != "k\x01 0" {
			t.Errorf("forced %q, want the second one alone", got)
		}
	})
}

// In a terminal: it draws, looks again by itself, and ends with the user.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	m := newTop(t.Context(), &listed{infos: []asynclock.Info{taken("order:42", "al", 1, 1)}}, "")
	m.pace = func(time.Duration, error) time.Duration { return time.Millisecond }
	terminal := teatest.NewTestModel(t, m, teatest.WithInitialTermSize(80, 10))
	teatest.WaitFor(t, terminal.Output(), func(screen []byte) bool { return bytes.Contains(screen, []byte("order:42")) },
		teatest.WithDuration(time.Minute))
	terminal.Type("q")
	terminal.WaitFinished(t, teatest.WithFinalTimeout(time.Minute))
}

// TopScreen is what top shows after two lists, a second apart, for tests of pages.
func TopScreen(ctx context.Context, locks *asynclock.Client, between func()) string {
	m, now := newTop(ctx, locks, ""), time.Now()
	m.now = func() time.Time { return now }
	m.Update(tea.WindowSizeMsg{Width: 110, Height: 5})
	m.Update(m.look())
	between()
	now = now.Add(time.Second)
	m.Update(m.look())
	var screen strings.Builder
	for line := range strings.Lines(ansi.Strip(m.View().Content)) {
		screen.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return screen.String()
}
