// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"

	"github.com/asynclock/asynclock-go/store/zkstore"
)

var zookeeperOptions = table[zkstore.Option]{
	"session_timeout": duration(zkstore.WithSessionTimeout),
	"tick_time":       duration(zkstore.WithTickTime),
	"short_ttls":      choice(map[string]zkstore.Option{"on": zkstore.WithShortTTLs()}),
}

func openZooKeeper(_ context.Context, l location, s settings) (*Store, error) {
	opts, err := options(l, zookeeperOptions)
	if err != nil {
		return nil, err
	}
	servers, more, err := ensemble(l.rest)
	if err != nil {
		return nil, err
	}
	opts = append(opts, more...)
	if l.client == "zks" {
		opts = append(opts, zkstore.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	opts = append(opts, logging(s, zkstore.WithLogger, zkstore.WithoutLogger)...)
	return opened(zkstore.Open(servers, opts...))
}

// ensemble reads a URL's text after the scheme. Package url would refuse several hosts with ports.
func ensemble(rest string) (servers []string, opts []zkstore.Option, err error) {
	rest, query, _ := strings.Cut(rest, "?")
	if query != "" {
		name, _, _ := strings.Cut(query, "=")
		return nil, nil, badURL("the parameter %q means nothing to ZooKeeper", name)
	}
	rest, root, _ := strings.Cut(rest, "/")
	if root != "" {
		root, err = url.PathUnescape(root)
		if err != nil {
			return nil, nil, badURL(unreadable)
		}
		opts = append(opts, zkstore.WithRoot("/"+root))
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		u, err := url.Parse("zk://" + rest[:at] + "@host")
		if err != nil {
			return nil, nil, badURL(unreadable)
		}
		password, _ := u.User.Password()
		opts, rest = append(opts, zkstore.WithDigest(u.User.Username(), password)), rest[at+1:]
	}
	return strings.Split(rest, ","), opts, nil
}
