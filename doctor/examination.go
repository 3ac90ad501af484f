// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

// ScratchPrefix is at the beginning of the keys that [Check] takes. A random name follows.
const ScratchPrefix = "asynclock-doctor/"

// endTime bounds each thing that is done in any case: to give a scratch key back, and to close a session.
const endTime = time.Second

// An examination is one call of Check or Why. One goroutine uses it.
type examination struct {
	st       store.Store
	session  store.Session // nil if the store could not be opened
	settings settings
	findings []Finding

	alive bool          // the server answers, as far as is known
	takes time.Duration // the TTL with which a scratch key could be taken; 0: none could
}

// prepare checks the arguments.
func prepare(ctx context.Context, st store.Store, opts []Option) (*examination, error) {
	if v := reflect.ValueOf(st); st == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("%w: nil store", store.ErrInvalidOption)
	}
	settings, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return &examination{st: st, settings: settings, alive: true}, ctx.Err()
}

// open opens the session, or reports why that is not possible. It fails if the store is none.
func (x *examination) open() error {
	session, err := x.st.Open(uuid.NewString(), func(store.Event) {})
	switch {
	case errors.Is(err, store.ErrInvalidOption):
		return err
	case err != nil:
		x.add(Unopened(err))
	default:
		x.session = session
	}
	return nil
}

func (x *examination) close(ctx context.Context) { end(ctx, x.session) }

// end closes a session, also if ctx has ended.
func end(ctx context.Context, session store.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	_ = session.Close(ctx) // the session has nothing any more that could be lost
}

// all makes one check after the other. A check during which ctx ends proves nothing, so its findings are dropped.
func (x *examination) all(ctx context.Context, checks ...func(context.Context)) ([]Finding, error) {
	for _, check := range checks {
		before := len(x.findings)
		check(ctx)
		if err := ctx.Err(); err != nil {
			return x.findings[:before], err
		}
	}
	return x.findings, nil
}

func (x *examination) add(f Finding) {
	f.Fact, f.Fix = sentence(f.Fact), sentence(f.Fix)
	x.findings = append(x.findings, f)
}

func (x *examination) report(check string, v Verdict, fact, fix string) {
	x.add(Finding{Check: check, Verdict: v, Fact: fact, Fix: fix})
}

// fail reports an error that ended a check, and remembers if the server does not answer.
func (x *examination) fail(check string, v Verdict, during string, err error) {
	if isSilence(err) {
		x.alive = false
	}
	x.report(check, v, during+": "+text(err), remedy(err))
}

// scratchKey returns a key that nobody else uses.
func scratchKey() string { return ScratchPrefix + uuid.NewString() }
