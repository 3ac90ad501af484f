// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Leases are holders, as they stand.
var (
	_ Holder  = (*asynclock.Lease)(nil)
	_ Holders = (*asynclock.MultiLease)(nil)
	_ Holders = Stamps(nil)
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		token, newest int64
		admitted      bool
	}{{5, 0, true}, {5, 4, true}, {5, 5, true}, {5, 6, false}, {1, 1 << 62, false}, {1 << 62, 1<<62 - 1, true}} {
		err := Admit(Stamp{"order:42", c.token}, "shop", c.newest)
		if c.admitted {
			if err != nil {
				t.Errorf("token %d after %d: got %v, want no error", c.token, c.newest, err)
			}
			continue
		}
		var stale *StaleError
		if !errors.Is(err, ErrStale) || !errors.As(err, &stale) || *stale != (StaleError{"order:42", "shop", c.token, c.newest}) {
			t.Errorf("token %d after %d: got %v, want ErrStale with both", c.token, c.newest, err)
		}
	}
}

func TestStaleErrorSaysWhatHappened(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]StaleError{
		`fence: stale fencing token: token 5 of "order:42" is smaller than 7`:             {"order:42", "", 5, 7},
		`fence: stale fencing token: token 5 of "order:42\n" at "shop" is smaller than 7`: {"order:42\n", "shop", 5, 7},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// bad are holders and resources that no fence takes.
var bad = []struct {
	name     string
	holder   Holder
	resource string
	want     error
}{
	{"no holder", nil, "", ErrInvalidToken},
	{"no lease", (*asynclock.Lease)(nil), "", ErrInvalidKey},
	{"no stamp", Stamp{}, "", ErrInvalidKey},
	{"empty key", Stamp{"", 1}, "", ErrInvalidKey},
	{"long key", Stamp{strings.Repeat("k", 513), 1}, "", ErrInvalidKey},
	{"no UTF-8", Stamp{"\xff", 1}, "", ErrInvalidKey},
	{"token 0", Stamp{"k", 0}, "", ErrInvalidToken},
	{"negative token", Stamp{"k", -1}, "", ErrInvalidToken},
	{"long resource", Stamp{"k", 1}, strings.Repeat("r", 65), ErrInvalidOption},
	{"resource of no UTF-8", Stamp{"k", 1}, "\xff", ErrInvalidOption},
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range bad {
		if err := Admit(c.holder, c.resource, 0); !errors.Is(err, c.want) || errors.Is(err, ErrStale) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if !errors.Is(ErrInvalidToken, asynclock.ErrInvalidOption) {
		t.Error("ErrInvalidToken is not an ErrInvalidOption")
	}
	if err := Admit(Stamp{strings.Repeat("k", 512), 1}, strings.Repeat("r", 64), 0); err != nil {
		t.Errorf("longest names: got %v, want no error", err)
	}
}

func TestNewStamp(t *testing.T) {
	t.Parallel()
	if s, err := NewStamp("k", 7); err != nil || s.Key() != "k" || s.Token() != 7 {
		t.Errorf("got %v, %v, want k and 7", s, err)
	}
	if s, err := NewStamp("k", 0); !errors.Is(err, ErrInvalidToken) || s != (Stamp{}) {
		t.Errorf("got %v, %v, want ErrInvalidToken", s, err)
	}
}

// Callers that list keys in other orders show them to fences in the same one.
func TestNewStamps(t *testing.T) {
	t.Parallel()
	want := Stamps{{"a", 3}, {"a:10", 1}, {"a:9", 2}, {"é", 4}}
	got, err := NewStamps(Stamps{want[3], want[1], want[0], want[2]})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got.Token("a:9") != 2 || got.Token("b") != 0 {
		t.Errorf("got the tokens %d and %d, want 2 and 0", got.Token("a:9"), got.Token("b"))
	}
	for name, c := range map[string]struct {
		holders Holders
		want    error
	}{
		"nil":      {nil, ErrInvalidToken},
		"no lease": {(*asynclock.MultiLease)(nil), ErrInvalidToken},
		"zero":     {new(asynclock.MultiLease), ErrInvalidToken},
		"none":     {Stamps{}, ErrInvalidToken},
		"token 0":  {Stamps{{"a", 1}, {"b", 0}}, ErrInvalidToken},
		"no key":   {Stamps{{"a", 1}, {}}, ErrInvalidKey},
		"twice":    {Stamps{{"a", 1}, {"b", 2}, {"a", 1}}, ErrInvalidOption},
	} {
		if got, err := NewStamps(c.holders); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// A Stamp travels as JSON. Before, it was {}, and the receiver had no token.
func TestStampTravelsAsJSON(t *testing.T) {
	t.Parallel()
	sent := []Stamp{{"order:42", 1<<63 - 1}, {"注文\x00\"<", 1}}
	text, err := json.Marshal(sent)
	if want := `[{"key":"order:42","token":"9223372036854775807"},`; err != nil || !strings.HasPrefix(string(text), want) {
		t.Fatalf("got %s, %v, want it to begin with %s", text, err, want)
	}
	var got []Stamp
	if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got, sent) {
		t.Errorf("got %v, %v, want %v", got, err, sent)
	}
	if text, err := json.Marshal(Stamp{}); !errors.Is(err, ErrInvalidKey) {
		t.Errorf("the zero Stamp: got %s, %v, want ErrInvalidKey", text, err)
	}
	for text, want := range map[string]error{
		`{}`: ErrInvalidKey, `null`: ErrInvalidKey, `{"key":"k"}`: ErrInvalidToken, `{"key":"k","token":"-1"}`: ErrInvalidToken,
		`{"key":"k","token":7}`: nil, `"k"`: nil,
	} {
		s := Stamp{"before", 1}
		if err := json.Unmarshal([]byte(text), &s); err == nil || want != nil && !errors.Is(err, want) || s != (Stamp{"before", 1}) {
			t.Errorf("%s: got %v and the error %v, want it unchanged, and %v", text, s, err, want)
		}
	}
}

var errWrite = errors.New("write failed")

func TestGateRefusesSmallerTokens(t *testing.T) {
	t.Parallel()
	var g Gate
	for _, c := range []struct {
		key   string
		token int64
		err   error // of the write
		want  error
	}{
		{"k", 5, nil, nil},
		{"k", 5, nil, nil},
		{"k", 4, nil, ErrStale},
		{"k", 9, errWrite, errWrite}, // it was let in
		{"k", 8, nil, ErrStale},
		{"other", 1, nil, nil},
		{"k", 9, nil, nil},
	} {
		wrote := false
		err := g.Do(t.Context(), Stamp{c.key, c.token}, func() error {
			wrote = true
			return c.err
		})
		if !errors.Is(err, c.want) || wrote != !errors.Is(c.want, ErrStale) {
			t.Errorf("%s with %d: got %v, wrote %t, want %v", c.key, c.token, err, wrote, c.want)
		}
	}
}

func TestGateRefusesBadInput(t *testing.T) {
	t.Parallel()
	var g Gate
	for _, c := range bad[:8] {
		if err := g.Do(t.Context(), c.holder, func() error { t.Error("let in: ", c.name); return nil }); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	var none context.Context
	if err := g.Do(none, Stamp{"k", 1}, func() error { return nil }); !errors.Is(err, ErrInvalidOption) {
		t.Errorf("nil context: got %v, want ErrInvalidOption", err)
	}
	if err := g.Do(t.Context(), Stamp{"k", 1}, nil); !errors.Is(err, ErrInvalidOption) {
		t.Errorf("nil function: got %v, want ErrInvalidOption", err)
	}
	if err := g.DoAll(t.Context(), Stamps{}, func() error { return nil }); !errors.Is(err, ErrInvalidToken) {
		t.Errorf("no keys: got %v, want ErrInvalidToken", err)
	}
	if err := g.DoAll(t.Context(), Stamps{{"k", 1}}, nil); !errors.Is(err, ErrInvalidOption) {
		t.Errorf("nil function for several: got %v, want ErrInvalidOption", err)
	}
}
