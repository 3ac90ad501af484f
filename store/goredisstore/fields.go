// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"maps"
	"reflect"
	"slices"
)

// A verdict says what becomes of a field. Fields of the same name mean the same in all options of
// go-redis.
type verdict int

const (
	unknown     verdict = iota // refused if it is set
	carried                    // by translate
	meaningless                // for locks
	refused                    // if it is set
)

// A decision is the verdict about a field. For a refused one it says why, to complete a sentence that
// begins with the field's name.
type decision struct {
	verdict verdict
	reason  string
}

// carriedFields are translated. values.go refuses some of their values.
var carriedFields = []string{
	"Network", "Addr", "Addrs", "SentinelAddrs", "MasterName", "IsClusterMode",
	"Username", "Password", "CredentialsProvider", "CredentialsProviderContext", "SentinelUsername", "SentinelPassword",
	"DB", "TLSConfig", "Dialer", "ClientName", "Protocol", "DisableIdentity", "DisableIndentity", "IdentitySuffix",
	"DialTimeout", "ReadTimeout", "WriteTimeout", "ClusterStateReloadInterval",
}

// meaninglessFields change how go-redis serves other commands, and have no part in what a lock promises.
var meaninglessFields = [][]string{
	// Pools and buffers. The store has at most three connections for each server.
	{
		"PoolFIFO", "PoolSize", "MaxConcurrentDials", "PoolTimeout", "MinIdleConns", "MaxIdleConns", "MaxActiveConns",
		"ConnMaxIdleTime", "ReadBufferSize", "WriteBufferSize",
		"PipelineReadBufferSize", "PipelineWriteBufferSize", "PipelinePoolSize", "AutoPipelineOptions",
	},
	// A command that is under way at the end of a lifetime may be sent twice, so connections have none.
	{"ConnMaxLifetime", "ConnMaxLifetimeJitter"},
	// The client repeats requests where that is safe, within their time.
	{
		"MaxRetries", "MinRetryBackoff", "MaxRetryBackoff", "MaxRedirects",
		"DialerRetries", "DialerRetryTimeout", "DialerRetryBackoff", "ContextTimeoutEnabled",
	},
	// Reads and routes of commands that the store does not send.
	{
		"ClientSideCacheConfig", "ClientSideCache", "ClientSideCacheStrategy", "ClientSideCacheRefreshOnInvalidate",
		"ClientSideCacheCoalesceMisses", "ClientSideCacheInvalidationBatchWindow",
		"RouteByLatencyTolerance", "UseDisconnectedReplicas", "DisableRoutingPolicies", "ShardPicker", "FailingTimeoutSeconds",
	},
	// NodeAddress is for maintenance notifications; UnstableResp3 has no effect in go-redis either.
	{"NodeAddress", "UnstableResp3", "MaintNotificationsConfig"},
}

const noReplicas = "reads from replicas, and a lock must not: leave it out, here or in a copy of the options"

var refusedFields = map[string]string{
	"Limiter":                      "is not called for locks: leave it out in a copy of the options",
	"OnConnect":                    "is not called for the store's connections: leave it out in a copy of the options",
	"PushNotificationProcessor":    "is not called for the store's connections: leave it out in a copy of the options",
	"StreamingCredentialsProvider": "can't authenticate a connection again while it is in use: use CredentialsProviderContext",
	"ClusterSlots":                 "describes servers that are no Cluster, and locks need a real one: leave it out",
	"NewClient":                    "makes clients that the store does not use: leave it out in a copy of the options",
	"ReadOnly":                     noReplicas,
	"ReplicaOnly":                  noReplicas,
	"RouteByLatency":               noReplicas,
	"RouteRandomly":                noReplicas,
}

var decisions = decide()

func decide() map[string]decision {
	all := make(map[string]decision)
	for _, name := range carriedFields {
		all[name] = decision{verdict: carried}
	}
	for _, names := range meaninglessFields {
		for _, name := range names {
			all[name] = decision{verdict: meaningless}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(refusedFields)) {
		all[name] = decision{refused, refusedFields[name]}
	}
	return all
}

// checkFields returns an error for the first field that is set and can't be carried.
func checkFields(options any) error {
	pointer := reflect.ValueOf(options)
	if pointer.IsNil() {
		return errNil
	}
	fields := pointer.Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if !field.IsExported() || fields.Field(i).IsZero() || isDefault(fields.Field(i)) {
			continue
		}
		switch d := decisions[field.Name]; d.verdict {
		case refused:
			return &OptionError{fields.Type().String(), field.Name, d.reason}
		case unknown:
			return &OptionError{fields.Type().String(), field.Name, "is unknown to this version of goredisstore: leave it out in a copy of the options"}
		}
	}
	return nil
}
