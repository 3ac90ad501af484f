// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

// A cpuMeter reads the CPU time that this process and Redis have used. Unlike rates and latencies,
// CPU time depends little on other load of the machine.
type cpuMeter struct {
	redis rueidis.Client // a client of its own, whose commands are not counted
}

func newCPUMeter(w world) (*cpuMeter, error) {
	w.dial = nil
	client, err := rueidis.NewClient(clientOption(w))
	return &cpuMeter{client}, err
}

func (c *cpuMeter) close() { c.redis.Close() }

// cpuTime is in seconds.
type cpuTime struct{ client, redis float64 }

func (t cpuTime) since(before cpuTime) cpuTime {
	return cpuTime{t.client - before.client, t.redis - before.redis}
}

func (c *cpuMeter) now(ctx context.Context) (t cpuTime, err error) {
	t.redis, err = c.serverCPU(ctx)
	if err != nil {
		return t, err
	}
	var usage syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	t.client = time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	return t, err
}

func (c *cpuMeter) serverCPU(ctx context.Context) (seconds float64, err error) {
	text, err := c.redis.Do(ctx, c.redis.B().Info().Section("cpu").Build()).ToString()
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, rest, ok := strings.Cut(text, "\n"+name)
		if !ok {
			return 0, fmt.Errorf("INFO cpu has no %s", name)
		}
		digits, _, _ := strings.Cut(rest, "\r\n")
		part, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return 0, err
		}
		seconds += part
	}
	return seconds, nil
}
