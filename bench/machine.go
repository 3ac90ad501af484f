// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
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

func describe(ctx context.Context, w world) (machine, error) {
	m := machine{
		When:    time.Now().UTC().Format(time.DateOnly),
		CPU:     field("/proc/cpuinfo", "model name"),
		Cores:   runtime.NumCPU(),
		System:  strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease")),
		Go:      runtime.Version(),
		Command: strings.Join(append([]string{"go run ."}, os.Args[1:]...), " "),
		Load:    firstLine("/proc/loadavg"),
	}
	redis, err := redisVersion(ctx, w)
	if err != nil {
		return m, err
	}
	m.Servers = append(m.Servers, "Redis "+redis)
	if w.etcd != "" {
		etcd, err := etcdVersion(ctx, w)
		if err != nil {
			return m, err
		}
		m.Servers = append(m.Servers, "etcd "+etcd)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if slices.Contains(compared, dep.Path) {
				m.Modules = append(m.Modules, strings.TrimPrefix(dep.Path, "github.com/")+" "+dep.Version)
			}
		}
	}
	return m, nil
}

// String describes the machine in Markdown.
func (m machine) String() string {
	return fmt.Sprintf("- When: %s, by `%s` in bench/; load average before: %s\n- Machine: %s, %d cores, %s; servers and clients all on it\n- Go: %s\n- Servers: %s\n- Clients: %s\n",
		m.When, m.Command, m.Load, m.CPU, m.Cores, m.System, m.Go, strings.Join(m.Servers, ", "), strings.Join(m.Modules, ", "))
}

func redisVersion(ctx context.Context, w world) (string, error) {
	client, err := rueidis.NewClient(clientOption(w))
	if err != nil {
		return "", err
	}
	defer client.Close()
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(info, "redis_version:")
	version, _, _ := strings.Cut(rest, "\r\n")
	return version, nil
}

func etcdVersion(ctx context.Context, w world) (string, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{w.etcd}, Logger: zap.NewNop()})
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	status, err := client.Status(ctx, w.etcd)
	if err != nil {
		return "", err
	}
	return status.Version, nil
}

// field returns the first value of a name in a file of lines "name : value".
func field(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return "an unknown processor"
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown processor"
}

func firstLine(path string) string {
	data, _ := os.ReadFile(path) // not every system has such a file
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}
