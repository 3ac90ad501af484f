// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"iter"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
)

const topHelp = `top shows the keys that are held or waited for, live: who has each, in which mode
and for how long, how many wait for it, and how many grants were seen in a
second.

It lists the keys once a second at most, and pauses for twelve times as long as
that takes, or as the list before took if that was quicker. So it sees no holder
that comes and goes meanwhile. A list that is older than two seconds says so.
HELD FOR counts from when top saw the holder first. A + behind it says that the
holder may have been there for longer. One behind GRANTS/S says that each list had
another holder, so there were probably more between them. GRANTS/S is not known
while lists are more than ten seconds apart.

Keys of the terminal:
  up, down, PgUp, PgDn, Home, End    choose a key
  enter      show who waits for it and who shares it; again: back
  /          show only keys that contain a text; esc: all
  s, r       sort by the next column; the other way round
  u          take the key from the holder that is shown, when the key has been
             typed. 'asynclock unlock --help' says what that means
  q, Ctrl-C  end
`

func (a *app) topCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "top [PREFIX]",
		Short: "Show the keys that are held, live",
		Long:  topHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if stdout, isFile := a.stdout.(*os.File); !a.onTerminal() || !isFile || !term.IsTerminal(int(stdout.Fd())) {
				return &exitError{code: exitUsage, err: errors.New("top needs a terminal; 'asynclock watch' prints lines")}
			}
			locks, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer locks.close()
			ctx, interrupted := a.untilSignal(cmd.Context())
			program := tea.NewProgram(newTop(ctx, locks.Client, strings.Join(args, "")),
				tea.WithContext(ctx), tea.WithInput(a.stdin), tea.WithOutput(a.stdout), tea.WithoutSignalHandler())
			_, err = program.Run()
			return interrupted(err)
		},
	}
}

// topLimit is for an answer.
const topLimit = 10 * time.Second

// topLocks are the calls of a client that top needs.
type topLocks interface {
	List(ctx context.Context, prefix string) iter.Seq2[asynclock.Info, error]
	board.Locker
}

// A top is the model of the table: what is shown, and what the user is about to do. It changes in Update alone, which
// one goroutine calls.
type top struct {
	request func() (context.Context, context.CancelFunc) // for one request
	locks   topLocks
	sampler board.Sampler
	now     func() time.Time
	pace    func(busy time.Duration, failed error) time.Duration

	board  board.Board
	shown  []*board.Row // in the order of the table
	unread int          // keys of the last list that can't be read
	failed error        // of the last list
	unseen error        // of the last look at the chosen key
	note   string       // what has happened to what the user did last

	width, height int
	chosen        string // key
	first         int    // index of the row at the top
	sortBy        board.Column
	reverse       bool
	mode          topMode
	typed         string // in the modes that type
	filter        string
	detail        *asynclock.Info // of chosen, in modeDetail
	target        asynclock.Info  // of modeForce
}

type topMode int

const (
	modeTable  topMode = iota
	modeFilter         // the user types a filter
	modeDetail         // one key is shown
	modeForce          // the user types a key to take it from its holder
)

func newTop(ctx context.Context, locks topLocks, prefix string) *top {
	return &top{
		request: func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, topLimit) },
		locks:   locks, sampler: board.Sampler{List: locks.List, Prefix: prefix}, now: time.Now,
		pace: new(board.Pace).After,
	}
}

// The messages that come back from requests.
type (
	topSampled struct {
		sample board.Sample
		unread int // keys that can't be read
		err    error
		busy   time.Duration
	}
	topLook      struct{} // it is time for the next list
	topTick      struct{} // a second has passed, in which the list may have become old
	topInspected struct {
		key  string
		info asynclock.Info
		err  error
	}
	topForced struct {
		key      string
		unlocked bool
		err      error
		effect   string // of the error
	}
)

// Init begins with a list. A server that is silent sends nothing that would draw the screen again, so a clock does.
func (m *top) Init() tea.Cmd { return tea.Batch(m.look, tick()) }

func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return topTick{} }) }

// look takes a sample. It is called by a goroutine of the program, once at a time.
func (m *top) look() tea.Msg {
	ctx, cancel := m.request()
	defer cancel()
	begin := m.now()
	s, _, err := m.sampler.Next(ctx)
	return topSampled{s, m.sampler.Unread(), err, m.now().Sub(begin)}
}

// inspect asks for the chosen key.
func (m *top) inspect() tea.Cmd {
	key := m.chosen
	return func() tea.Msg {
		ctx, cancel := m.request()
		defer cancel()
		info, err := m.locks.Inspect(ctx, key)
		return topInspected{key, info, err}
	}
}

// force takes the key from the holder that was shown, and from no other.
func (m *top) force() tea.Cmd {
	target := m.target
	return func() tea.Msg {
		ctx, cancel := m.request()
		defer cancel()
		unlocked, effect, err := board.Take(ctx, m.locks, target)
		return topForced{target.Key, unlocked, err, effect}
	}
}

// Update changes the model by a message.
func (m *top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.scroll()
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case topLook:
		return m, m.look
	case topTick:
		return m, tick()
	case topSampled:
		return m, m.sampled(msg)
	case topInspected:
		m.inspected(msg)
	case topForced:
		m.forced(msg)
	}
	return m, nil
}

func (m *top) sampled(msg topSampled) tea.Cmd {
	m.failed, m.unread = msg.err, msg.unread
	m.board.Update(m.now(), msg.sample, msg.err == nil)
	m.arrange()
	again := tea.Tick(m.pace(msg.busy, msg.err), func(time.Time) tea.Msg { return topLook{} })
	if m.mode == modeDetail {
		return tea.Batch(again, m.inspect())
	}
	return again
}

func (m *top) inspected(msg topInspected) {
	if m.mode != modeDetail || msg.key != m.chosen {
		return // the user has gone on
	}
	if m.unseen = msg.err; msg.err == nil {
		m.detail = &msg.info
	}
}

func (m *top) forced(msg topForced) {
	switch {
	case msg.err != nil:
		m.note = plain.Line(message(msg.err)) + "; " + msg.effect
	case msg.unlocked:
		m.note = plain.Text(msg.key) + " was taken from its holder"
	default:
		m.note = plain.Text(msg.key) + ": nobody held it"
	}
}
