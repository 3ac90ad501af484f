// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"reflect"

	"github.com/asynclock/asynclock-go/asynclock"
)

// kinds are the counts of a client, by kind of lease.
func kinds(s asynclock.Stats) map[string]asynclock.Acquisitions {
	return map[string]asynclock.Acquisitions{"exclusive": s.Exclusive, "readers": s.Readers, "permits": s.Permits, "several": s.Several}
}

// wantSums fails the story unless the client's counts agree with each other.
func (w *world) wantSums(c *asynclock.Client) {
	w.Helper()
	s := c.Stats()
	for kind, a := range kinds(s) {
		if a.Waiting < 0 || a.Held < 0 {
			w.Errorf("%s: got %d waiting and %d held: %+v", kind, a.Waiting, a.Held, a)
		}
	}
	each(reflect.ValueOf(s), "", func(name string, n int64) {
		if n < 0 {
			w.Errorf("%s: got %d", name, n)
		}
	})
}

// wantAllOver fails the story unless the counts say that nothing goes on in a client, which is closed.
func (w *world) wantAllOver(c *asynclock.Client) {
	w.Helper()
	s := c.Stats()
	for kind, a := range kinds(s) {
		if a.Requested != a.Acquired.Sum()+a.Refused.Sum()+a.GivenUp.Sum() || a.Acquired.Sum() != a.Ended.Sum() {
			w.Errorf("%s, after Close: got %+v, want sums that agree", kind, a)
		}
	}
	if s.Keys != (asynclock.Keys{}) {
		w.Errorf("keys, after Close: got %+v, want none", s.Keys)
	}
}

// each calls f for each number of the counts.
func each(v reflect.Value, name string, f func(name string, n int64)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			each(v.Field(i), name+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Int64:
		f(name, v.Int())
	}
}
