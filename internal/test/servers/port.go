// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// Ports are below those that systems give to outgoing connections: from 32768 up on
// Linux. So are the second ports of a Cluster's nodes, each busOffset above the first.
const (
	firstPort = 10100
	ports     = 10000
	busOffset = 10000
)

// nextPort goes round, so that a process finds a port again only when it has had all
// others. Processes begin at random, and so seldom meet.
var nextPort atomic.Uint32

func init() { nextPort.Store(rand.Uint32N(ports)) }

// freePort returns a port of 127.0.0.1 that nobody listens on. Somebody may come before
// the server does.
func freePort() (int, error) {
	for range ports {
		port := firstPort + int(nextPort.Add(1)%ports)
		if isFree(port) && isFree(port+busOffset) {
			return port, nil
		}
	}
	return 0, errors.New("no port is free")
}

// FreePorts returns n ports as freePort does.
func FreePorts(n int) ([]int, error) {
	all := make([]int, n)
	for i := range all {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		all[i] = port
	}
	return all, nil
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	return err == nil && l.Close() == nil
}

// errTaken is in errors about a server whose port is another's.
var errTaken = errors.New("somebody has its port")

// onFreePorts starts something on n free ports, and on others if somebody takes one first.
func onFreePorts[S any](n int, start func(ports []int) (S, error)) (S, error) {
	const tries = 20
	for try := 1; ; try++ {
		free, err := FreePorts(n)
		if err != nil {
			return *new(S), err
		}
		s, err := start(free)
		if !errors.Is(err, errTaken) || try == tries {
			return s, err
		}
	}
}
