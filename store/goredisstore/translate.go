// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"cmp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

const (
	// noticedWithin is how soon redisstore notices a dead server, if the options do not say it.
	noticedWithin = 3 * time.Second
	// dialDefault is what go-redis writes into options without a DialTimeout.
	dialDefault = 5 * time.Second
)

func ofServer(r refusal, o *redis.Options) (rueidis.ClientOption, error) {
	if o.Addr == ofFailoverClient {
		return rueidis.ClientOption{}, r.because("Addr", "is that of a failover client: pass its redis.FailoverOptions")
	}
	server := *o
	server.Addr = cmp.Or(o.Addr, "localhost:6379")
	if o.Network == "" && strings.HasPrefix(server.Addr, "/") {
		server.Network = "unix"
	}
	if server.Network != "unix" {
		if err := r.checkAddresses("Addr", []string{server.Addr}, o.Dialer != nil); err != nil {
			return rueidis.ClientOption{}, err
		}
	}
	option, err := common(r, &server)
	option.InitAddress = []string{server.Addr}
	option.ForceSingleClient = true // as go-redis, which asks no server whether it is a Cluster's
	return option, err
}

func ofCluster(r refusal, o *redis.ClusterOptions) (rueidis.ClientOption, error) {
	if err := r.checkAddresses("Addrs", o.Addrs, o.Dialer != nil); err != nil {
		return rueidis.ClientOption{}, err
	}
	option, err := common(r, &redis.Options{
		ClientName: o.ClientName, Dialer: o.Dialer, Protocol: o.Protocol, TLSConfig: o.TLSConfig,
		Username: o.Username, Password: o.Password,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		IdentitySuffix:           o.IdentitySuffix,
		DisableIdentity:          o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // deprecated, but somebody may have set it
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	})
	option.InitAddress = append([]string(nil), o.Addrs...)
	option.ClusterOption.ShardsRefreshInterval = max(o.ClusterStateReloadInterval, 0)
	return option, err
}

func ofSentinel(r refusal, o *redis.FailoverOptions) (rueidis.ClientOption, error) {
	if o.MasterName == "" {
		return rueidis.ClientOption{}, r.because("MasterName", "is missing")
	}
	if err := r.checkAddresses("SentinelAddrs", o.SentinelAddrs, o.Dialer != nil); err != nil {
		return rueidis.ClientOption{}, err
	}
	if err := r.checkUser("SentinelUsername", o.SentinelUsername, o.SentinelPassword); err != nil {
		return rueidis.ClientOption{}, err
	}
	option, err := common(r, &redis.Options{
		ClientName: o.ClientName, Dialer: o.Dialer, Protocol: o.Protocol, TLSConfig: o.TLSConfig, DB: o.DB,
		Username: o.Username, Password: o.Password,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		IdentitySuffix:  o.IdentitySuffix,
		DisableIdentity: o.DisableIdentity || o.DisableIndentity, //nolint:staticcheck // deprecated, but somebody may have set it
	})
	option.InitAddress = append([]string(nil), o.SentinelAddrs...)
	option.Sentinel = rueidis.SentinelOption{
		MasterSet: o.MasterName, Username: o.SentinelUsername, Password: o.SentinelPassword,
		ClientName: o.ClientName, TLSConfig: o.TLSConfig, Dialer: option.Dialer,
	}
	ownCredentials(&option)
	return option, err
}

// ofWhatever chooses as redis.NewUniversalClient does. It has a copy of the options, because their
// methods change them.
func ofWhatever(o redis.UniversalOptions) (rueidis.ClientOption, error) {
	const r = refusal("redis.UniversalOptions")
	switch {
	case o.MasterName != "":
		return ofSentinel(r, o.Failover())
	case len(o.Addrs) < 2 && !o.IsClusterMode:
		return ofServer(r, o.Simple())
	case o.DB != 0:
		return rueidis.ClientOption{}, r.because("DB", "is not 0, and a Cluster has no other: set 0 for a Cluster")
	}
	return ofCluster(r, o.Cluster())
}

// common translates what all options have.
func common(r refusal, o *redis.Options) (rueidis.ClientOption, error) {
	option := rueidis.ClientOption{
		Username: o.Username, Password: o.Password, AuthCredentialsFn: credentials(o),
		ClientName: o.ClientName, SelectDB: o.DB, AlwaysRESP2: o.Protocol == 2,
		TLSConfig: o.TLSConfig, DialCtxFn: dialer(o),
	}
	switch {
	case o.DisableIdentity || o.DisableIndentity: //nolint:staticcheck // deprecated, but somebody may have set it
		option.ClientSetInfo = rueidis.DisableClientSetInfo
	case o.IdentitySuffix != "":
		option.ClientSetInfo = []string{rueidis.LibName + "(" + o.IdentitySuffix + ")", rueidis.LibVer}
	}
	if o.DialTimeout != dialDefault {
		option.Dialer.Timeout = o.DialTimeout
	}
	for _, limit := range []time.Duration{o.ReadTimeout, o.WriteTimeout} {
		if limit > 0 && limit < cmp.Or(option.ConnWriteTimeout, noticedWithin) {
			option.ConnWriteTimeout = limit
		}
	}
	return option, r.check(o)
}
