// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"reflect"
	"unsafe"
	"weak"
)

// A weakChan refers to a channel without keeping it. A program that selects on a new future in each turn of a loop
// leaves one behind each time. When the collector has taken the channel, nobody can receive from it any more, so the
// future need not wait. Timers of package time do the same.
//
// Package weak knows pointers only. A channel is one, to memory of the runtime.
type weakChan[T any] struct{ to weak.Pointer[byte] }

func weaklyTo[T any](c chan T) weakChan[T] {
	return weakChan[T]{weak.Make((*byte)(reflect.ValueOf(c).UnsafePointer()))}
}

// get returns the channel, or nil if it is gone.
func (w weakChan[T]) get() chan T {
	p := w.to.Value()
	return *(*chan T)(unsafe.Pointer(&p)) // a nil pointer is a nil channel
}

// isGone reports whether there was a channel, and is none any more.
func (w weakChan[T]) isGone() bool { return w != (weakChan[T]{}) && w.to.Value() == nil }
