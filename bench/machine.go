// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

// A machine describes a run: the machine, the versions, and the command.
type machine struct {
	When    string   `json:"when"`
	CPU     string   `json:"cpu"`
	Cores   int      `json:"cores"`
	System  string   `json:"system"`
	Go      string   `json:"go"`
	Servers []string `json:"servers"`
	Modules []string `json:"modules"`
	Command string   `json:"command"`
	Load    string   `json:"loadAverageBefore,omitempty"`
}

// compared are the modules whose versions matter.
var compared = []string{
	"github.com/redis/rueidis", "github.com/redis/rueidis/rueidislock", "github.com/bsm/redislock",
	"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9", "go.etcd.io/etcd/client/v3",
}

func describe(ctx context.Context, w world, load string) machine {
	redis := must(rueidis.NewClient(clientOption(w)))
	defer redis.Close()
	m := machine{
		When:    time.Now().UTC().Format(time.DateOnly),
		CPU:     "an unknown processor",
		Cores:   runtime.NumCPU(),
		System:  strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease")),
		Go:      runtime.Version(),
		Servers: []string{"Redis " + info(ctx, redis, "server")["redis_version"]},
		Command: strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "),
		Load:    load,
	}
	facts, _ := os.ReadFile("/proc/cpuinfo") // not every system has such a file
	if _, rest, found := strings.Cut(string(facts), "model name\t: "); found {
		m.CPU, _, _ = strings.Cut(rest, "\n")
	}
	if w.etcd != "" {
		e := new(etcdClient).dial(w)
		m.Servers = append(m.Servers, "etcd "+must(e.Status(ctx, w.etcd)).Version)
		check(e.close(ctx))
	}
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range built.Deps {
			if slices.Contains(compared, dep.Path) {
				m.Modules = append(m.Modules, strings.TrimPrefix(dep.Path, "github.com/")+" "+dep.Version)
			}
		}
	}
	return m
}

// String describes the machine in Markdown.
func (m machine) String() string {
	return fmt.Sprintf("- When: %s, by `%s` in bench/; load average before: %s\n- Machine: %s, %d cores, %s; servers and clients all on it\n- Go: %s\n- Servers: %s\n- Clients: %s\n",
		m.When, m.Command, m.Load, m.CPU, m.Cores, m.System, m.Go, strings.Join(m.Servers, ", "), strings.Join(m.Modules, ", "))
}

func firstLine(path string) string {
	data, _ := os.ReadFile(path) // not every system has such a file
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// info asks Redis for a section of INFO.
func info(ctx context.Context, redis rueidis.Client, section string) map[string]string {
	return parseInfo(must(redis.Do(ctx, redis.B().Info().Section(section).Build()).ToString()))
}

func parseInfo(text string) map[string]string {
	facts := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			facts[name] = value
		}
	}
	return facts
}

// meterless returns a client of Redis whose commands are not counted.
func (s *stage) meterless() rueidis.Client {
	w := s.world
	w.dial = nil
	c := must(rueidis.NewClient(clientOption(w)))
	s.after(closing(c))
	return c
}

// A cpuTime is what this process and Redis have used, in seconds. Unlike rates and latencies,
// CPU time depends little on other load of the machine.
type cpuTime struct{ client, redis float64 }

// cpuSince returns what was used since then.
func cpuSince(ctx context.Context, redis rueidis.Client, before cpuTime) (t cpuTime) {
	facts := info(ctx, redis, "cpu")
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		t.redis += must(strconv.ParseFloat(facts[name], 64))
	}
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	t.client = time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	return cpuTime{t.client - before.client, t.redis - before.redis}
}

// A scriptTime is what scripts have cost the server since its start, as it counts by itself.
type scriptTime struct{ calls, micros float64 }

// scriptsSince returns what they have cost since then. A script that was never called has no line in INFO.
func scriptsSince(ctx context.Context, redis rueidis.Client, before scriptTime) scriptTime {
	t := scriptsOf(info(ctx, redis, "commandstats"))
	return scriptTime{t.calls - before.calls, t.micros - before.micros}
}

func scriptsOf(stats map[string]string) (t scriptTime) {
	for _, name := range []string{"cmdstat_eval", "cmdstat_evalsha", "cmdstat_fcall"} {
		for field := range strings.SplitSeq(stats[name], ",") {
			switch key, digits, _ := strings.Cut(field, "="); key {
			case "calls":
				t.calls += must(strconv.ParseFloat(digits, 64))
			case "usec":
				t.micros += must(strconv.ParseFloat(digits, 64))
			}
		}
	}
	return t
}
