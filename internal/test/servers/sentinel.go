// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// MasterSet is the name that sentinels give to what they watch.
const MasterSet = "asynclock"

// StartSentinel starts a primary with replicas, and sentinels that watch them. It returns
// when each of these could fail over.
func StartSentinel(ctx context.Context, c Config, replicas, sentinels int) (*Deployment, error) {
	d := &Deployment{config: c}
	err := d.startReplication(ctx, replicas)
	if err == nil {
		err = d.startSentinels(ctx, sentinels)
	}
	return d.whole(err)
}

// startReplication returns when the replicas are in step. Sentinels ask the primary for
// its replicas when they start, and then not for 10 s.
func (d *Deployment) startReplication(ctx context.Context, replicas int) error {
	primary, err := StartRedis(ctx, d.config.named("primary"))
	if err != nil {
		return err
	}
	d.Nodes = []*Redis{primary}
	more, err := startAll(replicas, func(i int) (*Redis, error) {
		return StartRedis(ctx, d.config.named(numbered("replica", i), "--replicaof", host, primary.Port()))
	})
	if err != nil {
		return err
	}
	d.Nodes = append(d.Nodes, more...)
	for _, replica := range more {
		if err := awaitReplica(ctx, replica, primary); err != nil {
			return err
		}
	}
	return nil
}

func awaitReplica(ctx context.Context, replica, primary *Redis) error {
	return Await(ctx, replica.Name, func(ctx context.Context) error { return replica.Follows(ctx, primary) })
}

func (d *Deployment) startSentinels(ctx context.Context, n int) (err error) {
	d.Sentinels, err = startAll(n, func(i int) (*Redis, error) {
		c := Config{Dir: d.config.Dir, Name: numbered("sentinel", i), Encryption: d.config.Encryption}
		file, err := d.writeSentinelFile(c.Name, n/2+1)
		c.first = []string{file, "--sentinel"}
		if err != nil {
			return nil, err
		}
		return StartRedis(ctx, c)
	})
	if err != nil {
		return err
	}
	for _, s := range d.Sentinels {
		if err := Await(ctx, s.Name, func(ctx context.Context) error { return d.isWatchedBy(ctx, s) }); err != nil {
			return err
		}
	}
	return nil
}

// writeSentinelFile writes the file that a sentinel insists on having, since it keeps
// there what it learns.
func (d *Deployment) writeSentinelFile(name string, quorum int) (string, error) {
	file, err := os.CreateTemp(d.config.Dir, name+"-*.conf")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(file, `sentinel monitor %[1]s %[2]s %[3]s %[4]d
sentinel down-after-milliseconds %[1]s %[5]d
sentinel failover-timeout %[1]s 3000
sentinel parallel-syncs %[1]s %[6]d
`, MasterSet, host, d.Nodes[0].Port(), quorum, d.config.patience().Milliseconds(), len(d.Nodes)-1)
	return file.Name(), errors.Join(err, file.Close())
}

// isWatchedBy checks that a sentinel knows the primary, every replica and every other
// sentinel, and finds all of them well: only then could it fail over.
func (d *Deployment) isWatchedBy(ctx context.Context, sentinel *Redis) error {
	reply, err := sentinel.Ask(ctx, "SENTINEL", "MASTER", MasterSet)
	if err != nil {
		return err
	}
	facts, err := reply.AsStrMap()
	if err != nil {
		return err
	}
	err = expect(facts, map[string]string{
		"flags":               "master",
		"num-slaves":          strconv.Itoa(len(d.Nodes) - 1),
		"num-other-sentinels": strconv.Itoa(len(d.Sentinels) - 1),
	})
	if err != nil {
		return err
	}
	if reply, err = sentinel.Ask(ctx, "SENTINEL", "REPLICAS", MasterSet); err != nil {
		return err
	}
	replicas, err := reply.ToArray()
	if err != nil {
		return err
	}
	for _, replica := range replicas {
		if facts, err = replica.AsStrMap(); err != nil {
			return err
		}
		if err := expect(facts, map[string]string{"flags": "slave", "master-link-status": "ok"}); err != nil {
			return err
		}
	}
	return nil
}

// FailOver makes the sentinels promote a replica, and waits until they have.
func (d *Deployment) FailOver(ctx context.Context) error {
	before, err := d.primaryAddr(ctx)
	if err != nil {
		return err
	}
	return Await(ctx, "the failover", func(ctx context.Context) error {
		now, err := d.primaryAddr(ctx)
		if err != nil || now != before {
			return err
		}
		// It refuses while the last one is not over, and gives up when the machine is
		// so busy that a step takes longer than its timeout. So it is asked again.
		if err := d.Sentinels[0].Do(ctx, "SENTINEL", "FAILOVER", MasterSet); err != nil {
			return err
		}
		return errors.New("it has begun")
	})
}

func (d *Deployment) primaryAddr(ctx context.Context) (string, error) {
	return d.Sentinels[0].Text(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterSet)
}
