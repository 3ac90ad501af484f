// SPDX-License-Identifier: Apache-2.0

package certmagiclock_test

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// An authority issues certificates of any kind, which certmagic stores unread.
type authority struct {
	issue func(attempt int) error // what happens before it issues
	calls int
}

func (*authority) IssuerKey() string { return "authority" }

func (a *authority) Issue(context.Context, *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	a.calls++
	if err := a.issue(a.calls); err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: []byte("certificate"), Metadata: "metadata"}, nil
}

// magic makes an instance of certmagic.
func (w *world) magic(storage certmagic.Storage, issuer certmagic.Issuer) *certmagic.Config {
	w.Helper()
	var c *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return c, nil },
		Logger:           zap.NewNop(),
	})
	w.Cleanup(cache.Stop)
	c = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{issuer}, Logger: zap.NewNop()})
	return c
}

func TestTwoInstancesObtainACertificateOnce(t *testing.T) {
	story(t, func(w *world) {
		slow := &authority{issue: func(int) error { time.Sleep(10 * time.Second); return nil }}
		a, b := w.magic(w.instance(), slow), w.magic(w.instance(), slow)
		done := make(chan error)
		for _, c := range []*certmagic.Config{a, b} {
			go func() { done <- c.ObtainCertSync(w.Context(), "example.com") }()
		}
		for range 2 {
			if err := <-done; err != nil {
				w.Error(err)
			}
		}
		if slow.calls != 1 {
			w.Errorf("got %d certificates, want 1", slow.calls)
		}
	})
}

// The first attempt fails, and before the next one the lease is lost. certmagic does not call Lock again.
func TestTheNextAttemptHasALeaseAgain(t *testing.T) {
	const key = "test:issue_cert_example.com"
	story(t, func(w *world) {
		ca := new(authority)
		ca.issue = func(attempt int) error {
			w.WantHeld(key)
			if attempt > 1 {
				return nil
			}
			w.Expire(key)
			return errors.New("out of order")
		}
		if err := w.magic(w.instance(), ca).ObtainCertAsync(w.Context(), "example.com"); err != nil {
			w.Fatal(err)
		}
		if ca.calls != 2 {
			w.Errorf("got %d attempts, want 2", ca.calls)
		}
		w.WantFree(key)
	})
}
