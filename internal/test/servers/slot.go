// SPDX-License-Identifier: Apache-2.0

package servers

import "context"

// A Move is one of a slot, from one master of a Cluster to another.
type Move struct {
	Slot     string
	From, To *Redis
	// Midway is called when the first key has moved. It may be nil.
	Midway func()
}

// MoveSlot moves a slot key by key, as the tools of Redis do.
func (d *Deployment) MoveSlot(ctx context.Context, m Move) error {
	fromID, err := m.From.Text(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	toID, err := m.To.Text(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	if err := m.To.Do(ctx, "CLUSTER", "SETSLOT", m.Slot, "IMPORTING", fromID); err != nil {
		return err
	}
	if err := m.From.Do(ctx, "CLUSTER", "SETSLOT", m.Slot, "MIGRATING", toID); err != nil {
		return err
	}
	if err := m.keys(ctx); err != nil {
		return err
	}
	return d.assign(ctx, m, toID)
}

// keys moves the keys.
func (m Move) keys(ctx context.Context) error {
	for moved := 0; ; moved++ {
		names, err := m.From.List(ctx, "CLUSTER", "GETKEYSINSLOT", m.Slot, "1")
		if err != nil || len(names) == 0 {
			return err
		}
		if err := m.From.Do(ctx, "MIGRATE", host, m.To.Port(), names[0], "0", "1000"); err != nil {
			return err
		}
		if moved == 0 && m.Midway != nil {
			m.Midway()
		}
	}
}

// assign tells the masters whose the slot is: the new one first, or both would disown it.
func (d *Deployment) assign(ctx context.Context, m Move, toID string) error {
	told := []*Redis{m.To, m.From}
	for _, node := range d.Nodes {
		role, err := node.Role(ctx)
		if err != nil {
			return err
		}
		if role == "master" {
			told = append(told, node)
		}
	}
	for _, node := range told {
		if err := node.Do(ctx, "CLUSTER", "SETSLOT", m.Slot, "NODE", toID); err != nil {
			return err
		}
	}
	return nil
}
