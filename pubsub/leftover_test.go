// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/timerleak"
	"github.com/asynclock/asynclock-go/pubsub"
)

// A closed inbox has no timer, not even one that would do nothing. In real time: in a
// bubble a timer that was stopped stays until it would have fired. Not parallel: the
// profile is the process's.
func TestClosedInboxHasNoTimer(t *testing.T) {
	defer timerleak.Watch()()
	for _, misbehave := range []func(*fakeSource){
		func(*fakeSource) {},
		func(f *fakeSource) { f.refuse = errors.New("refused") },
		func(f *fakeSource) { f.publishErr = errors.New("not published") },
	} {
		f := newFakeSource()
		misbehave(f)
		inbox := pubsub.Open(f, new(recorder).handler())
		<-inbox.Settled()
		inbox.Close(context.Background())
	}
	if err := timerleak.Find("github.com/asynclock/asynclock-go/pubsub."); err != nil {
		t.Error(err)
	}
}
