// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Deployment is several Redis servers that work together.
type Deployment struct {
	// Nodes have keys, or copies of them. Those that were primaries from the start are first.
	Nodes []*Redis
	// Sentinels are of a Sentinel set.
	Sentinels []*Redis

	config  Config
	masters int // of a Cluster
}

// URL is where clients find the deployment, as rueidis.ParseURL reads it: the first
// address is the host, the others are in the query.
func (d *Deployment) URL() string {
	known, query := d.Nodes, url.Values{}
	if len(d.Sentinels) > 0 {
		known = d.Sentinels
		query.Set("master_set", MasterSet)
	}
	for _, more := range known[1:] {
		query.Add("addr", more.Addr)
	}
	// A query may hold colons as they are, and people read these.
	text := strings.ReplaceAll(query.Encode(), "%3A", ":")
	u := url.URL{Scheme: d.config.Encryption.scheme(), Host: known[0].Addr, RawQuery: text}
	return u.String()
}

// Close ends all servers.
func (d *Deployment) Close() {
	for _, r := range slices.Concat(d.Sentinels, d.Nodes) {
		r.Close()
	}
}

// whole returns the deployment if all went well, and otherwise closes it.
func (d *Deployment) whole(err error) (*Deployment, error) {
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// startAll starts n servers at a time. If one does not start, none is left.
func startAll(n int, start func(i int) (*Redis, error)) ([]*Redis, error) {
	all, problems := make([]*Redis, n), make([]error, n)
	var starting sync.WaitGroup
	for i := range n {
		starting.Go(func() { all[i], problems[i] = start(i) })
	}
	starting.Wait()
	err := errors.Join(problems...)
	if err == nil {
		return all, nil
	}
	for i, r := range all {
		if problems[i] == nil {
			r.Close()
		}
	}
	return nil, err
}

// numbered is the name of the i-th of several servers.
func numbered(name string, i int) string { return name + "-" + strconv.Itoa(i+1) }
