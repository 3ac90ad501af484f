// SPDX-License-Identifier: Apache-2.0

// Package demo shows the lock at work without any server: real processes, a Redis server embedded
// in this process, and the two accidents that a lock with a TTL must survive: a holder that dies
// and a holder that is paused.
//
// The process that calls [Run] conducts: it starts the server and the workers ([Work]), sends them
// orders over their stdin, and counts.
//
// demo.go has the story, crew.go the workers as the conductor sees them, worker.go the work. The
// other files are for the display.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// ErrUnsafe says that the demo saw a failure that the lock promises to prevent.
var ErrUnsafe = errors.New("the lock did not keep its promise")

// Options say how long the demo takes and where its output goes.
type Options struct {
	// Command is the command line of a worker. It ends up in [Work] with the
	// arguments that Run appends: the URL of the Redis server, the path of the
	// counter, the URL of the ledger and the TTL.
	Command []string
	// Out receives the story and, on a terminal, the live panel.
	Out io.Writer

	Processes int           // at least 3; default 5
	Race      time.Duration // without a lock; default 1.5 s
	Guard     time.Duration // with one; default 2.5 s
	TTL       time.Duration // of the lock; default 2 s
	Pause     time.Duration // for people to follow; default 0.5 s
}

// patience is how long any step may take, except slow ones by design, on a busy machine.
const patience = 15 * time.Second

// A show is one run of the demo.
type show struct {
	Options
	screen  *screen
	crew    *crew
	counter counter

	rate   rate    // of handoffs
	before []int64 // updates of each process when the act began

	race, guarded outcome
}

// An outcome says how many updates were made and kept.
type outcome struct{ made, kept int64 }

func (o outcome) lost() int64 { return o.made - o.kept }

func sum(numbers []int64) int64 {
	var sum int64
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// Run runs the demo. It returns [ErrUnsafe] if an update made under the lock was lost or a stale
// token was accepted, and ctx's error if ctx ended first. It leaves no process and no file.
func Run(ctx context.Context, options Options) error {
	// The workers end when the thread that started them ends; see proc.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	dir, err := os.MkdirTemp("", "asynclock-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "counter")
	counter, err := openCounter(path)
	if err != nil {
		return err
	}
	defer counter.close()

	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Close()
	ledger, err := openLedger()
	if err != nil {
		return err
	}
	defer ledger.close()

	d := &show{
		Options: options.withDefaults(),
		crew:    &crew{heard: make(chan struct{}, 1)},
		counter: counter,
	}
	defer d.crew.stop()
	for i := range d.Processes {
		name := string(rune('A' + i))
		command := append(slices.Clone(d.Command),
			"--redis", "redis://"+server.Addr(), "--counter", path, "--ledger", ledger.url,
			"--ttl", d.TTL.String(), "--holder", "process "+name)
		if err := d.crew.start(name, command); err != nil {
			return err
		}
	}
	d.screen = newScreen(d.Out)
	defer d.screen.close()
	return d.play(ctx, server.Addr())
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	if o.Processes == 0 {
		o.Processes = 5
	}
	set(&o.Race, 1500*time.Millisecond)
	set(&o.Guard, 2500*time.Millisecond)
	set(&o.TTL, 2*time.Second)
	set(&o.Pause, 500*time.Millisecond)
	return o
}

// play runs the four acts.
func (d *show) play(ctx context.Context, address string) error {
	began := time.Now()
	d.screen.say("%d processes raise one number in a file. Their locks are in a Redis embedded", d.Processes)
	d.screen.say("in this program, at %s, with a TTL of %v.", address, d.TTL)
	d.before = d.crew.updates()
	if err := d.untilRest(ctx); err != nil {
		return err
	}
	for _, act := range []func(context.Context) error{
		d.withoutLock, d.withLock, d.killHolder, d.pauseHolder, d.countGuarded,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return d.conclude(time.Since(began))
}

// withoutLock lets the processes race and counts the damage.
func (d *show) withoutLock(ctx context.Context) error {
	d.title("1. Nobody locks.")
	if err := d.counter.write(0, 0); err != nil {
		return err
	}
	if err := d.crew.tell(doRace, d.crew.members...); err != nil {
		return err
	}
	if err := d.watch(ctx, d.Race); err != nil {
		return err
	}
	if err := d.allRest(ctx); err != nil {
		return err
	}
	value, _, err := d.counter.read()
	if err != nil {
		return err
	}
	d.race = outcome{made: sum(d.crew.updates()), kept: value}
	d.say("%d updates were made, the file counts %d: %s.",
		d.race.made, d.race.kept, d.screen.paint(red, strconv.FormatInt(d.race.lost(), 10)+" were lost"))
	return nil
}

// withLock lets them do the same, each update under the lock. The counter continues until
// countGuarded.
func (d *show) withLock(ctx context.Context) error {
	d.title("2. Each locks before it reads and unlocks after it wrote.")
	if err := d.counter.write(0, 0); err != nil {
		return err
	}
	handoffs := d.crew.handoffCount()
	if err := d.crew.tell(doGuard, d.crew.members...); err != nil {
		return err
	}
	if err := d.watch(ctx, d.Guard); err != nil {
		return err
	}
	handoffs = d.crew.handoffCount() - handoffs
	if err := d.allRest(ctx); err != nil {
		return err
	}
	value, _, err := d.counter.read()
	if err != nil {
		return err
	}
	now := outcome{made: sum(d.crew.updates()) - d.race.made, kept: value}
	d.say("%d updates were made, the file counts %d: %s.", now.made, now.kept, d.verdict(now))
	var shares strings.Builder
	for i, updates := range d.crew.updates() {
		fmt.Fprintf(&shares, ", %s %d", d.crew.members[i].name, updates-d.before[i])
	}
	d.say("The key changed hands %.0f times a second, in turn%s.", float64(handoffs)/d.Guard.Seconds(), shares.String())
	return nil
}

// killHolder kills a holder and waits until the others continue.
func (d *show) killHolder(ctx context.Context) error {
	d.title("3. A holder is killed (kill -9).")
	victim, others := d.crew.members[0], d.crew.members[1:]
	if err := d.take(ctx, victim); err != nil {
		return err
	}
	if err := d.crew.tell(doGuard, others...); err != nil {
		return err
	}
	if err := d.watch(ctx, d.Pause); err != nil {
		return err
	}
	d.say("Process %s holds the lock with token %d and dies.", victim.name, d.crew.state(victim).token)
	killed := time.Now()
	if err := d.crew.kill(victim); err != nil {
		return err
	}
	if err := d.until(ctx, "take over", func() bool { return d.crew.tookAt.After(killed) }); err != nil {
		return err
	}
	heir, at := d.crew.lastTake()
	d.say("Process %s has it after %v, when what was left of the TTL of %v had run out.",
		heir.name, at.Sub(killed).Round(10*time.Millisecond), d.TTL)
	if err := d.watch(ctx, d.Pause); err != nil {
		return err
	}
	return d.allRest(ctx)
}

// countGuarded counts the lost ones of all updates made under the lock.
func (d *show) countGuarded(ctx context.Context) error {
	if err := d.allRest(ctx); err != nil {
		return err
	}
	value, _, err := d.counter.read()
	d.guarded = outcome{made: sum(d.crew.updates()) - d.race.made, kept: value}
	return err
}

// conclude sums up.
func (d *show) conclude(took time.Duration) error {
	d.title("%26s %12s", "without lock", "with lock")
	d.say("in the steps %10s %12s", "1", "2 to 4")
	d.say("updates made %10d %12d", d.race.made, d.guarded.made)
	d.say("updates lost %10d %12d", d.race.lost(), d.guarded.lost())
	if d.guarded.lost() != 0 {
		return fmt.Errorf("%w: %d protected updates were lost", ErrUnsafe, d.guarded.lost())
	}
	d.screen.say("")
	d.screen.say("No update made under the lock was lost. This took %.1f s.", took.Seconds())
	return nil
}
