// SPDX-License-Identifier: Apache-2.0

package machine

// A linked is an element of a list. It is in one list at a time.
type linked[T any] interface {
	*T
	link() **T // to the next element
}

// A list is a queue without memory of its own.
type list[T any, P linked[T]] struct{ first, last *T }

func (l *list[T, P]) push(x *T) {
	if l.first == nil {
		l.first = x
	} else {
		*P(l.last).link() = x
	}
	l.last = x
}

func (l *list[T, P]) pop() *T {
	x := l.first
	if x != nil {
		next := P(x).link()
		l.first, *next = *next, nil
	}
	return x
}
