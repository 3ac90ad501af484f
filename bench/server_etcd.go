// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// startEtcd starts an etcd server with its data in memory, if etcd is installed. Otherwise the
// address is empty and the reason says why.
func startEtcd(ctx context.Context) (address, reason string, stop func(), err error) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return "", "etcd is not installed (Debian: apt-get install etcd-server), so it is left out", func() {}, nil //nolint:nilerr // the report says it
	}
	ports, err := servers.FreePorts(2)
	if err != nil {
		return "", "", nil, err
	}
	dir, err := os.MkdirTemp(memoryDir(), "asynclock-bench-")
	if err != nil {
		return "", "", nil, err
	}
	address = "127.0.0.1:" + strconv.Itoa(ports[0])
	server, err := proc.Start(etcdCommand(program, dir, address, "127.0.0.1:"+strconv.Itoa(ports[1])))
	if err != nil {
		return "", "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		_ = server.Kill() // fails only if it has ended
		os.RemoveAll(dir)
	}
	if err := etcdAnswers(ctx, address); err != nil {
		stop()
		return "", "", nil, err
	}
	return address, "", stop, nil
}

func etcdCommand(program, dir, address, peers string) *exec.Cmd {
	clientURL, peerURL := "http://"+address, "http://"+peers
	cmd := exec.Command(program, "--data-dir", dir, "--log-level", "error",
		"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	cmd.Env = environWithout("ETCD_")
	return cmd
}

// etcdAnswers waits until it does.
func etcdAnswers(ctx context.Context, address string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	asking, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err := client.Get(asking, "ready"); err != nil {
		return fmt.Errorf("etcd at %s does not answer: %w", address, err)
	}
	return nil
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
