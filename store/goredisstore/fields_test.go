// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/push"

	"github.com/asynclock/asynclock-go/store"
)

// plain returns options of each kind that are accepted.
func plain() []any {
	return []any{
		&redis.Options{Addr: "host:1"},
		&redis.UniversalOptions{Addrs: []string{"host:1"}},
		&redis.ClusterOptions{Addrs: []string{"host:1"}},
		&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"host:1"}},
	}
}

// fieldsOf yields the settable fields of options.
func fieldsOf(options any) func(func(string, reflect.Value) bool) {
	return func(yield func(string, reflect.Value) bool) {
		v := reflect.ValueOf(options).Elem()
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !yield(f.Name, v.Field(i)) {
				return
			}
		}
	}
}

// A newer go-redis has new fields. Somebody decides about each of them.
func TestEachFieldIsDecided(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, options := range plain() {
		for name := range fieldsOf(options) {
			seen[name] = true
			if decisions[name].verdict == unknown {
				t.Errorf("%T.%s: nobody has decided what becomes of it: see fields.go", options, name)
			}
		}
	}
	for name := range decisions {
		if !seen[name] {
			t.Errorf("%s: got a decision about a field that go-redis does not have", name)
		}
	}
	if n := len(carriedFields) + len(slices.Concat(meaninglessFields...)) + len(refusedFields); n != len(decisions) {
		t.Errorf("got %d verdicts about %d fields, want one each", n, len(decisions))
	}
}

func TestARefusedFieldIsNamed(t *testing.T) {
	t.Parallel()
	tried := make(map[string]bool)
	for i, options := range plain() {
		for name := range fieldsOf(options) {
			if decisions[name].verdict != refused {
				continue
			}
			tried[name] = true
			options := plain()[i]
			reflect.ValueOf(options).Elem().FieldByName(name).Set(something(t, name, reflect.TypeOf(options).Elem()))
			_, err := translate(options)
			wantRefused(t, options, name, err)
		}
	}
	if len(tried) != len(refusedFields) {
		t.Errorf("got %v tried, want all of %v", slices.Sorted(maps.Keys(tried)), slices.Sorted(maps.Keys(refusedFields)))
	}
}

func TestAMeaninglessFieldChangesNothing(t *testing.T) {
	t.Parallel()
	for i, options := range plain() {
		want, err := translate(options)
		if err != nil {
			t.Fatalf("%T: %v", options, err)
		}
		for name := range fieldsOf(options) {
			if decisions[name].verdict != meaningless {
				continue
			}
			options := plain()[i]
			reflect.ValueOf(options).Elem().FieldByName(name).Set(something(t, name, reflect.TypeOf(options).Elem()))
			if got, err := translate(options); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%T.%s: got %+v, %v; want %+v", options, name, got, err, want)
			}
		}
	}
}

// A field of a go-redis that is newer than this package is not lost without a word.
func TestAnUnknownFieldIsRefusedIfItIsSet(t *testing.T) {
	t.Parallel()
	type newer struct {
		Addr    string
		Novelty bool
	}
	if err := checkFields(&newer{Addr: "host:1"}); err != nil {
		t.Errorf("the field is not set: got %v, want no error", err)
	}
	var refusal *OptionError
	if err := checkFields(&newer{Novelty: true}); !errors.As(err, &refusal) || refusal.Field != "Novelty" {
		t.Errorf("the field is set: got %v, want an OptionError about Novelty", err)
	}
}

func wantRefused(t *testing.T, options any, field string, err error) {
	t.Helper()
	var refusal *OptionError
	kind := strings.TrimPrefix(reflect.TypeOf(options).String(), "*")
	switch {
	case !errors.As(err, &refusal) || !errors.Is(err, store.ErrInvalidOption):
		t.Errorf("%s.%s: got %v, want an OptionError", kind, field, err)
	case refusal.Options != kind || refusal.Field != field:
		t.Errorf("%s.%s: got %v, want the field's name", kind, field, err)
	case !strings.Contains(err.Error(), kind+"."+field) || refusal.Reason == "":
		t.Errorf("%s.%s: got %q, want the field's name and a reason", kind, field, err)
	}
}

// something is a value that says something, for a field.
func something(t *testing.T, name string, options reflect.Type) reflect.Value {
	t.Helper()
	field, _ := options.FieldByName(name)
	value := reflect.New(field.Type).Elem()
	switch field.Type.Kind() {
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int:
		value.SetInt(7)
	case reflect.Int64:
		value.SetInt(int64(time.Minute))
	case reflect.String:
		value.SetString("text")
	case reflect.Pointer:
		value.Set(reflect.New(field.Type.Elem()))
	case reflect.Func:
		value.Set(reflect.MakeFunc(field.Type, nil))
	case reflect.Interface:
		value.Set(implementation(t, name))
	default:
		t.Fatalf("%s: this test has no value for a %v", name, field.Type)
	}
	return value
}

func implementation(t *testing.T, name string) reflect.Value {
	t.Helper()
	switch name {
	case "Limiter":
		return reflect.ValueOf(struct{ redis.Limiter }{})
	case "ClientSideCache":
		return reflect.ValueOf(struct{ redis.Cache }{})
	case "PushNotificationProcessor":
		return reflect.ValueOf(struct{ push.NotificationProcessor }{})
	case "StreamingCredentialsProvider":
		return reflect.ValueOf(struct {
			auth.StreamingCredentialsProvider
		}{})
	case "ShardPicker": // its type is go-redis' own
		o := &redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}
		if err := redis.NewClusterClient(o).Close(); err != nil {
			t.Fatal(err)
		}
		return reflect.ValueOf(o.ShardPicker)
	}
	t.Fatalf("%s: this test has no value for it", name)
	panic("unreachable")
}

// The page for users lists each field.
func TestThePageHasEachField(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/stores/goredis.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range decisions {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/stores/goredis.md: got nothing about %s", name)
		}
	}
}
