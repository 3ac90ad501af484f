// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"crypto/tls"
	"crypto/x509"
	"log"
	"os"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A server that speaks TLS and knows its clients by certificates.
func ExampleOpen_tls() {
	var ours tls.Certificate // from tls.LoadX509KeyPair
	roots := x509.NewCertPool()
	store, err := redisstore.Open(rueidis.ClientOption{
		InitAddress: []string{"redis.internal:6379"},
		Username:    "locker", Password: os.Getenv("REDIS_PASSWORD"),
		TLSConfig: &tls.Config{ServerName: "redis.internal", RootCAs: roots, Certificates: []tls.Certificate{ours}},
	})
	if err != nil {
		log.Fatal(err)
	}
	store.Close()
}

// Sentinels and servers that speak TLS. The sentinels have a user of their own.
func ExampleOpen_sentinel() {
	var ours tls.Certificate // from tls.LoadX509KeyPair
	roots := x509.NewCertPool()
	option := rueidis.ClientOption{
		InitAddress: []string{"sentinel1.internal:26379", "sentinel2.internal:26379", "sentinel3.internal:26379"},
		Username:    "locker", Password: os.Getenv("REDIS_PASSWORD"),
		TLSConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{ours}}, // for sentinels, too
	}
	option.Sentinel.MasterSet = "main"
	option.Sentinel.Username, option.Sentinel.Password = "watcher", os.Getenv("SENTINEL_PASSWORD")
	store, err := redisstore.Open(option)
	if err != nil {
		log.Fatal(err)
	}
	store.Close()
}
