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
