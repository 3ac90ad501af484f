// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// startEtcd starts an etcd server with its data in memory, if etcd is installed. Otherwise the
// address is empty and the reason says why.
func startEtcd(ctx context.Context) (address, reason string, stop func(), err error) {
	nothing := func() {}
	program, err := exec.LookPath("etcd")
	if err != nil {
		return "", "etcd is not installed (Debian: apt-get install etcd-server), so it is left out", nothing, nil
	}
	ports, err := freePorts(2)
	if err != nil {
		return "", "", nothing, err
	}
	dir, err := os.MkdirTemp(memoryDir(), "asynclock-bench-")
	if err != nil {
		return "", "", nothing, err
	}
	clientURL, peerURL := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	server := exec.CommandContext(ctx, program, "--data-dir", dir, "--log-level", "error",
		"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	server.Env = environWithout("ETCD_")
	stop, err = startServer(server, dir)
	if err != nil {
		return "", "", nothing, err
	}
	address = "127.0.0.1:" + ports[0]
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		stop()
		return "", "", nothing, err
	}
	defer func() { _ = client.Close() }()
	asking, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err := client.Get(asking, "ready"); err != nil {
		stop()
		return "", "", nothing, fmt.Errorf("etcd at %s does not answer: %w", address, err)
	}
	return address, "", stop, nil
}

// memoryDir returns a directory that is not on a disk, if the system has one.
func memoryDir() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

// environWithout returns the environment without the variables that begin with prefix. They are a
// package's own settings for its service.
func environWithout(prefix string) (kept []string) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, prefix) {
			kept = append(kept, entry)
		}
	}
	return kept
}
