// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// alike are parts of the stores' scripts that are written in several places, in both stores'. To share them in
// SQL would cost each request a call, and after a COMMIT none may be made. Patterns are of lines without tabs,
// in lower case and with the prefix of sqlstore.
var alike = []struct {
	what    string
	kind    string
	place   string // where there has to be one of these parts
	part    string
	differs string // what each place may have of its own
}{
	{"the check of a request", sqlconn.KindPostgres, `function asynclock_clock\(`, `create or replace function asynclock_(clock|alone)\(.*?\$\$;.*?\$\$;`, `distinct from '.*?'|these routines .*?'`},
	{"the sweep after requests", sqlconn.KindPostgres, `perform asynclock_sweep\(`, `-- so rows are deleted.*?\nend if;`, `v_live, `},
	{"the table of fences", sqlconn.KindPostgres, `table if not exists asynclock_fence`, `table if not exists asynclock_fence \(.*?\n\);`, ` -- region[^\n]*`},
	{"the begin of a request", sqlconn.KindMySQL, `procedure asynclock_begin\(`, `-- a request must not go on.*?\nend\n`, `<> '.*?'|these routines .*?'|set v_(region|now|live) = [^\n]*\n`},
	{"what undoes a request", sqlconn.KindMySQL, `call asynclock_begin\(`, `declare exit handler for sqlexception begin\n.*?\nend;`, ``},
	{"the answer", sqlconn.KindMySQL, `call asynclock_begin\(`, `set @@innodb_lock_wait_timeout = cast[^\n]*\nselect [^\n]*\nend\n`, ``},
	{"the sweep after requests", sqlconn.KindMySQL, `call asynclock_sweep\(`, `commit;\n-- so rows are deleted.*?\nend if;`, `v_live, `},
	{"the wait for a locked row", sqlconn.KindMySQL, `find: loop\n`, `leave find;\nend if;\nif timestampdiff.*?\nend loop;`, ``},
	{"the making of a row", sqlconn.KindMySQL, `insert (ignore )?into (asynclock_lock|asynclock_lease|int_lock) \(`, `-- a row that another transaction.*?;\n`, ``},
	{"the table of fences", sqlconn.KindMySQL, `table if not exists asynclock_fence`, `table if not exists asynclock_fence \(.*?\n\)[^\n]*`, ` -- region[^\n]*`},
}

// scriptsAreAlike is a test: who changes one of these parts changes all that have to be like it. A store's own
// test has it, because a script is part of that package: go test repeats no answer from before the change.
func (Suite) scriptsAreAlike(t *testing.T) {
	for _, a := range alike {
		var parts []string
		for _, store := range []string{"sqlstore", "sqlstore/springsql"} {
			text := script(t, store, a.kind)
			found := regexp.MustCompile("(?s)"+a.part).FindAllString(text, -1)
			if places := regexp.MustCompile(a.place).FindAllString(text, -1); len(found) != len(places) {
				t.Errorf("%s in %s of %s: got it %d times, want %d", a.what, a.kind, store, len(found), len(places))
			}
			parts = append(parts, found...)
		}
		for i, part := range parts {
			if parts[i] = regexp.MustCompile(a.differs).ReplaceAllString(part, ""); parts[i] != parts[0] {
				t.Errorf("%s in %s: got\n%s\nwant it like\n%s", a.what, a.kind, parts[i], parts[0])
			}
		}
	}
}

// script returns a store's script as the patterns want it.
func script(t *testing.T, store, kind string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kit.Root(t), "store", store, "schema", kind+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(string(text)), "\t", ""), "int_lock_", "asynclock_")
}
