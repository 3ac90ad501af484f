// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"

	"github.com/redis/rueidis"
)

// Primaries returns the nodes that have keys of their own, and those that won't
// say: scanning a replica finds some keys twice, which is allowed.
func Primaries(ctx context.Context, client rueidis.Client) ([]rueidis.Client, error) {
	if client.Mode() != rueidis.ClientModeCluster {
		return []rueidis.Client{client}, nil
	}
	var primaries []rueidis.Client
	for _, node := range client.Nodes() {
		role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
		if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
			return nil, err
		}
		if len(role) > 0 {
			if name, _ := role[0].ToString(); name != "master" {
				continue
			}
		}
		primaries = append(primaries, node)
	}
	return primaries, nil
}
