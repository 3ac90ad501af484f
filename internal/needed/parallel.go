// SPDX-License-Identifier: Apache-2.0

package needed

import (
	"flag"
	"strconv"
)

// InParallel lets n tests of a package run side by side, unless the flag -parallel says
// how many. It is for packages whose tests wait most of the time, and is called by
// their TestMain, before any test.
func InParallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
