// SPDX-License-Identifier: Apache-2.0

package main

import "golang.org/x/sync/errgroup"

// A failure is an error on its way to catch. A workload ends by it as a test ends by t.Fatal.
type failure struct{ err error }

// check ends the workload if there is an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the value, or ends the workload.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// catch does something and returns the error by which it ended.
func catch(do func()) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			err = reason.err
		default:
			panic(reason)
		}
	}()
	do()
	return nil
}

// together does something n times at once and waits for all. The first failure is that of the caller.
func together(n int, do func(i int)) {
	var all errgroup.Group
	for i := range n {
		all.Go(func() error { return catch(func() { do(i) }) })
	}
	check(all.Wait())
}

// beside starts something. The function that it returns waits for its end, and fails as it did.
func beside(do func()) (wait func()) {
	var one errgroup.Group
	one.Go(func() error { return catch(do) })
	return func() { check(one.Wait()) }
}
