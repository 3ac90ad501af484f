// SPDX-License-Identifier: Apache-2.0

package fuzzreply_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/fuzzreply"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	m, err := fuzzreply.Message([]byte("l\x05i\xfft\x03keybl\x01t\x7fxe\x04OOM "))
	if err != nil {
		t.Fatal(err)
	}
	list, err := m.ToArray()
	if err != nil || len(list) != 5 {
		t.Fatalf("got %v, %v, want five in a list", list, err)
	}
	if n, err := list[0].ToInt64(); n != -1 || err != nil {
		t.Errorf("the integer: got %d, %v, want -1", n, err)
	}
	if s, err := list[1].ToString(); s != "key" || err != nil {
		t.Errorf("the text: got %q, %v, want key", s, err)
	}
	if b, err := list[2].ToBool(); !b || err != nil {
		t.Errorf("got %v, %v, want true", b, err)
	}
	if inner, err := list[3].ToArray(); len(inner) != 1 || err != nil {
		t.Errorf("the inner list: got %v, %v, want one text", inner, err)
	}
	if !list[4].IsNil() {
		t.Errorf("what is missing: got %v, want null", list[4])
	}
}

func TestErrorReply(t *testing.T) {
	t.Parallel()
	m, err := fuzzreply.Message([]byte("e\x0bOOM command"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Error(); got == nil || got.Error() != "OOM command" {
		t.Errorf("got %v, want OOM command", got)
	}
}
