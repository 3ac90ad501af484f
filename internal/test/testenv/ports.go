// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that Linux gives to outgoing
// connections (32768 and up), also a Cluster node's second one, 10000 higher.
const (
	firstPort = 12000
	lastPort  = 20999
	busOffset = 10000
)

// freePorts returns n ports that nobody listens on. Somebody may come before
// the server does; then the server ends and says so in its log.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for _, i := range rand.Perm(lastPort - firstPort + 1) {
		if port := firstPort + i; isFree(port) && isFree(port+busOffset) {
			if ports = append(ports, port); len(ports) == n {
				return ports, nil
			}
		}
	}
	return nil, errors.New("no free ports")
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	return err == nil && l.Close() == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
