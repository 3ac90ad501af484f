// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"flag"
	"strconv"
)

// InParallel has n parallel tests run at once, unless -parallel says how many, which is
// by default one for each processor: too few where tests wait most of the time. It is
// for TestMain.
func InParallel(n int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
