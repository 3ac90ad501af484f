// SPDX-License-Identifier: Apache-2.0

package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An Ensemble is several servers that elect a leader among them.
type Ensemble struct{ Servers []*Server }

// PortsPerServer is how many ports a server of an ensemble needs.
const PortsPerServer = 3

// StartEnsemble starts n servers, on the ports given, and waits until each serves.
func StartEnsemble(ctx context.Context, dir string, ports []int) (*Ensemble, error) {
	n := len(ports) / PortsPerServer
	var peers strings.Builder
	for i := range n {
		fmt.Fprintf(&peers, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[n+2*i], ports[n+2*i+1])
	}
	e := &Ensemble{}
	for i := range n {
		s, err := launchMember(filepath.Join(dir, "server-"+strconv.Itoa(i+1)), i+1, ports[i], peers.String())
		if err != nil {
			e.Kill()
			return nil, err
		}
		e.Servers = append(e.Servers, s)
	}
	for _, s := range e.Servers {
		if err := s.await(ctx, ""); err != nil {
			e.Kill()
			return nil, err
		}
	}
	return e, nil
}

func launchMember(dir string, id, port int, peers string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(id)), 0o600); err != nil {
		return nil, err
	}
	return launch(dir, port, peers)
}

// Kill ends all servers.
func (e *Ensemble) Kill() {
	for _, s := range e.Servers {
		if !s.Ended() {
			s.Kill()
		}
	}
}

// Addrs are the servers' addresses.
func (e *Ensemble) Addrs() (all []string) {
	for _, s := range e.Servers {
		all = append(all, s.Addr)
	}
	return all
}

// errNoLeader says that no server leads, for now.
var errNoLeader = errors.New("no server leads")

// Roles finds the leader and the followers that serve.
func (e *Ensemble) Roles(ctx context.Context) (leader *Server, followers []*Server, err error) {
	for _, s := range e.Servers {
		if s.Ended() {
			continue
		}
		switch mode, _ := s.mode(ctx); mode {
		case "leader":
			leader = s
		case "follower":
			followers = append(followers, s)
		}
	}
	if leader == nil {
		return nil, nil, errNoLeader
	}
	return leader, followers, nil
}
