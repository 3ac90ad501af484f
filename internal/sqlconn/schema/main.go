// SPDX-License-Identifier: Apache-2.0

// Command schema writes the scripts of the stores in databases. It makes them from shared
// parts: the begin of a request, the loop over its items, locking rows, sweeping. The scripts
// are checked in, so that they can be run as they are.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:generate go run .

//go:embed src/*.tmpl
var sources embed.FS

// toStores is where the stores are, from here.
const toStores = "../../../store"

func main() {
	for _, s := range scripts {
		text, err := s.generate()
		if err == nil {
			err = os.WriteFile(filepath.Join(toStores, s.file()), text, 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// A script makes the tables and routines of one store in one kind of database.
type script struct {
	store, kind string
	prefix      string // of routines and of tables
	upper       bool   // names are in capitals
}

var scripts = []script{
	{store: "sqlstore", kind: "postgres", prefix: "asynclock_"},
	{store: "sqlstore", kind: "mysql", prefix: "asynclock_"},
	{store: "springsql", kind: "postgres", prefix: "INT_LOCK_", upper: true},
	{store: "springsql", kind: "mysql", prefix: "INT_LOCK_", upper: true},
}

// file is where the script is, in the directory of the stores.
func (s script) file() string { return filepath.Join(s.store, "schema", s.kind+".sql") }

// generate returns the script.
func (s script) generate() ([]byte, error) {
	own := s.store + "_" + s.kind + ".tmpl"
	t := template.New(own).Option("missingkey=error").Funcs(template.FuncMap{
		"name":   func(name string) string { return s.prefix + s.column(name) },
		"column": s.column,
		"args":   args,
	})
	parts := "src/" + s.store + "_" + s.kind + "*.tmpl" // its own, of which the rest may define more
	if _, err := t.ParseFS(sources, "src/common.tmpl", "src/"+s.kind+".tmpl", parts); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err := t.Execute(&text, nil)
	return text.Bytes(), err
}

// column writes a name as the store's tables do.
func (s script) column(name string) string {
	if s.upper {
		return strings.ToUpper(name)
	}
	return name
}

// args makes the arguments of a part: names, each before its value.
func args(pairs ...string) (map[string]string, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("%q has no value", pairs[len(pairs)-1])
	}
	all := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all, nil
}
