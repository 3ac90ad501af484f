// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An Ensemble is several ZooKeepers that elect a leader among them.
type Ensemble struct{ Servers []*ZooKeeper }

// portsPerMember is one for clients, and two for the others of the ensemble.
const portsPerMember = 3

// StartEnsemble starts n servers, with their data below dir, and waits until each serves.
func StartEnsemble(ctx context.Context, dir string, n int) (*Ensemble, error) {
	return onFreePorts(n*portsPerMember, func(ports []int) (*Ensemble, error) {
		own, err := os.MkdirTemp(dir, "ensemble-")
		if err != nil {
			return nil, err
		}
		e := new(Ensemble)
		if err = e.start(ctx, own, ports); err != nil {
			e.Close()
		}
		return e, err
	})
}

// start starts all of them before it waits for one: none serves by itself.
func (e *Ensemble) start(ctx context.Context, dir string, ports []int) error {
	n := len(ports) / portsPerMember
	var peers strings.Builder
	for i := range n {
		fmt.Fprintf(&peers, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[n+2*i], ports[n+2*i+1])
	}
	for i := range n {
		z, err := newMember(dir, i+1, ports[i], peers.String())
		if err != nil {
			return err
		}
		if err := z.Start(); err != nil {
			return err
		}
		e.Servers = append(e.Servers, z)
	}
	for _, z := range e.Servers {
		if err := z.Await(ctx); err != nil {
			return err
		}
	}
	return nil
}

func newMember(parent string, id, port int, peers string) (*ZooKeeper, error) {
	dir := filepath.Join(parent, strconv.Itoa(id))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(id)), 0o600); err != nil {
		return nil, err
	}
	return newZooKeeper(dir, port, peers)
}

// Close ends all servers.
func (e *Ensemble) Close() {
	for _, z := range e.Servers {
		z.Kill()
	}
}

// Addrs are the servers' addresses.
func (e *Ensemble) Addrs() (all []string) {
	for _, z := range e.Servers {
		all = append(all, z.Addr)
	}
	return all
}

// errNoLeader says that no server leads, for now.
var errNoLeader = errors.New("no server leads")

// Roles finds the leader and the followers that serve.
func (e *Ensemble) Roles(ctx context.Context) (leader *ZooKeeper, followers []*ZooKeeper, err error) {
	for _, z := range e.Servers {
		if z.Ended() {
			continue
		}
		switch mode, _ := z.mode(ctx); mode {
		case "leader":
			leader = z
		case "follower":
			followers = append(followers, z)
		}
	}
	if leader == nil {
		return nil, nil, errNoLeader
	}
	return leader, followers, nil
}
