// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

const (
	masters = 3
	slots   = 16384
)

func (s *servers) launchMasters() error {
	for i := range masters {
		one, err := s.launch(fmt.Sprintf("cluster-%d", i+1), inMemory(
			"--cluster-enabled", "yes",
			"--cluster-node-timeout", "2000")...)
		if err != nil {
			return err
		}
		s.masters = append(s.masters, one)
	}
	return nil
}

// formCluster gives each master an equal range of slots and introduces them to
// the first, through which they find each other.
func (s *servers) formCluster(ctx context.Context) error {
	for i, one := range s.masters {
		// Different epochs from the start spare them the conflict over who is newer.
		if _, err := one.ask(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return fmt.Errorf("%s: epoch: %w", one.name, err)
		}
		command := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * slots / masters; slot < (i+1)*slots/masters; slot++ {
			command = append(command, strconv.Itoa(slot))
		}
		if _, err := one.ask(ctx, command...); err != nil {
			return fmt.Errorf("%s: slots: %w", one.name, err)
		}
	}
	for _, one := range s.masters[1:] {
		host, port, err := net.SplitHostPort(one.addr)
		if err != nil {
			return err
		}
		if _, err := s.masters[0].ask(ctx, "CLUSTER", "MEET", host, port); err != nil {
			return fmt.Errorf("%s: meet: %w", one.name, err)
		}
	}
	return nil
}

// clusterServes checks that every master knows of every slot and takes part.
func (s *servers) clusterServes(ctx context.Context) error {
	for _, one := range s.masters {
		facts, err := one.facts(ctx, "CLUSTER", "INFO")
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		err = expect(facts, map[string]string{
			"cluster_state":       "ok",
			"cluster_slots_ok":    strconv.Itoa(slots),
			"cluster_known_nodes": strconv.Itoa(masters),
			"cluster_size":        strconv.Itoa(masters),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}
