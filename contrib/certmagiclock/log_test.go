// SPDX-License-Identifier: Apache-2.0

package certmagiclock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/asynclock/asynclock-go/contrib/certmagiclock"
)

// A secretive storage has a password in an exported field, as those of databases have, and does not print itself.
type secretive struct {
	certmagic.Storage
	Password string
}

// certmagic logs zap.Any("storage", …).
func TestLogsSayNothingOfTheInnerStorage(t *testing.T) {
	story(t, func(w *world) {
		s, err := certmagiclock.Wrap(secretive{w.files, "hunter2"}, w.Client(), "test:")
		if err != nil {
			w.Fatal(err)
		}
		for name, got := range printed(w, s) {
			if !strings.Contains(got, "certmagiclock.Storage(certmagiclock_test.secretive)") || strings.Contains(got, "hunter2") {
				w.Errorf("%s: got %q, want the kinds of the storages and no field", name, got)
			}
		}
		if got := fmt.Sprint((*certmagiclock.Storage)(nil)); got != "<nil>" {
			w.Errorf("got %q, want <nil>", got)
		}
	})
}

// printed returns what becomes of a storage in logs, by itself and in a struct of a program.
func printed(w *world, s *certmagiclock.Storage) map[string]string {
	w.Helper()
	config := struct{ Storage certmagic.Storage }{s}
	all := make(map[string]string)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		all[verb] = fmt.Sprintf(verb, s)
		all[verb+" in a struct"] = fmt.Sprintf(verb, config)
	}
	inJSON, err := json.Marshal(config)
	if err != nil {
		w.Fatal(err)
	}
	all["json"] = string(inJSON)
	var zaps, texts, jsons bytes.Buffer
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&zaps), zap.InfoLevel)
	zap.New(core).Info("zap", zap.Any("storage", s))
	all["zap"] = zaps.String()
	zaps.Reset()
	zap.New(core).Info("zap", zap.Any("config", config))
	all["zap in a struct"] = zaps.String()
	slog.New(slog.NewTextHandler(&texts, nil)).Info("slog", "storage", s)
	slog.New(slog.NewJSONHandler(&jsons, nil)).Info("slog", "storage", s)
	all["slog"], all["slog in JSON"] = texts.String(), jsons.String()
	return all
}
