// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

func TestBothMatchesTwoErrorsAndSaysALossOnce(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("%w: expired", store.ErrLost)
	loss := fmt.Errorf("asynclock: unlock \"k\": %w", cause)
	soldOut := errors.New("sold out")
	for name, c := range map[string]struct {
		work, loss error
		want       string
	}{
		"no loss":             {soldOut, nil, "sold out"},
		"only a loss":         {nil, loss, loss.Error()},
		"another error":       {soldOut, loss, "sold out\n" + loss.Error()},
		"the loss":            {cause, loss, loss.Error()},
		"the loss, wrapped":   {fmt.Errorf("save: %w", cause), loss, "save: " + cause.Error()},
		"the loss of a part":  {fmt.Errorf("save: %w", cause), errors.Join(loss), "save: " + cause.Error()},
		"one of two":          {cause, errors.Join(loss, soldOut), cause.Error() + "\n" + loss.Error() + "\nsold out"},
		"another kind of end": {fmt.Errorf("%w: forced", store.ErrLost), loss, "asynclock: lease lost: forced\n" + loss.Error()},
	} {
		got := Both(c.work, c.loss)
		if got.Error() != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		for _, target := range []error{c.work, c.loss} {
			if target != nil && !errors.Is(got, target) {
				t.Errorf("%s: got an error that does not match %q", name, target)
			}
		}
	}
	if err := Both(nil, nil); err != nil {
		t.Errorf("got %v of nothing, want nil", err)
	}
}
