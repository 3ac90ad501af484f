// SPDX-License-Identifier: Apache-2.0

// Package timerleak finds timers that are armed when nothing should be left, as
// goleak finds goroutines: of time.AfterFunc, of contexts with a deadline, and what
// context.AfterFunc has left with a context that goes on.
//
// Go has no list of its timers. But what is armed is in use, and the memory profile
// knows what is in use and who allocated it. A timer with a channel that no goroutine
// waits for is garbage, armed or not, since Go 1.23; one that a goroutine waits for is
// goleak's business.
package timerleak

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Watch notes every allocation from now on, until the function that it returns is
// called. Of what was allocated before, the profile knows a sample only. It costs a
// program some of its speed.
func Watch() (end func()) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	return func() { runtime.MemProfileRate = rate }
}

// patience is how long Find looks again before it reports a timer. Timers that are about to
// be given up are gone by then, and so are timers that fire that soon. On a busy machine a look may take as long, and
// the first one shows the least. So it looks leastLooks times at least.
const (
	patience   = time.Second / 4
	leastLooks = 5
)

// Find returns an error that says who made the timers that are still armed. It reports timers
// that were made while Watch was on, by a package whose path begins with path. Their makers
// must not be reachable any more: a stopped timer may still be in use.
func Find(path string) error {
	start := time.Now()
	for looks := 1; ; looks++ {
		found := find(path)
		if len(found) == 0 {
			return nil
		}
		if looks >= leastLooks && time.Since(start) > patience {
			return fmt.Errorf("armed when all is over, after %d looks in %v: %s", looks, time.Since(start), strings.Join(found, "; "))
		}
		time.Sleep(patience / 10)
	}
}

// find lists them as they are now.
func find(path string) (found []string) {
	sweep()
	for _, r := range profile() {
		if r.InUseObjects() == 0 {
			continue
		}
		if what, who, ours := maker(r.Stack(), path); ours {
			found = append(found, fmt.Sprintf("%d by %s, with %s", r.InUseObjects(), who, what))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// sweep makes the runtime forget timers that were stopped, which it puts off: they
// go when they would have fired, or all at once when they are more than a quarter of
// those of a processor. So for a moment there is only one processor, and there are
// many: all armed first, and before one that is not stopped, since what was stopped
// last goes alone with the next that is armed. Otherwise others that are armed for long
// would be too many. The profile is complete up to the collection before the last.
func sweep() {
	all := runtime.GOMAXPROCS(1)
	var many [10_000]*time.Timer
	for i := range many {
		many[i] = time.AfterFunc(time.Hour, func() {})
	}
	last := time.AfterFunc(2*time.Hour, func() {})
	for _, timer := range many {
		timer.Stop()
	}
	time.Sleep(time.Millisecond)
	last.Stop()
	runtime.GOMAXPROCS(all)
	for range 3 {
		runtime.GC()
	}
}

func profile() []runtime.MemProfileRecord {
	for n := 1000; ; n *= 2 {
		records := make([]runtime.MemProfileRecord, n)
		if n, ok := runtime.MemProfile(records, false); ok {
			return records[:n]
		}
	}
}

// makers are the functions that allocate what stays in use for as long as it is armed.
var makers = []string{"time.newTimer", "time.AfterFunc", "context.AfterFunc"}

// maker returns which of them allocated something, on whose behalf, and whether that
// was a package whose path begins so.
func maker(stack []uintptr, path string) (what, who string, ours bool) {
	frames := runtime.CallersFrames(stack)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		pkg, _, _ := strings.Cut(f.Function, ".")
		switch {
		case f.Function == "runtime.growslice":
			return "", "", false // a processor's list of timers, not one of them
		case strings.HasSuffix(f.Function, "/timerleak.sweep"):
			return "", "", false // one of the many, which a busy machine may not have forgotten yet
		case pkg == "runtime":
		case pkg == "time" || pkg == "context":
			if slices.Contains(makers, f.Function) {
				what = f.Function
			} else if what == "" {
				return "", "", false // it allocated something else
			}
		default:
			who = fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line)
			return what, who, what != "" && strings.HasPrefix(f.Function, path)
		}
	}
	return "", "", false
}
