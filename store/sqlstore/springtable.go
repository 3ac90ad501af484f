// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// A table is what the database says of one.
type table struct {
	name    string
	columns map[string]column
	unique  bool // by LOCK_KEY and REGION
	plain   bool // it has no transactions
}

type column struct {
	kind   string // as the database writes it, in lower case
	strict bool   // NOT NULL, and no default
}

// springTable looks at Java's table. Without one it has no columns.
func (st *Store) springTable(ctx context.Context) (table, error) {
	for _, r := range st.settings.spring.region {
		if st.dialect.asciiRegions && r >= utf8.RuneSelf {
			return table{}, fmt.Errorf("%w: on MySQL a region has to be ASCII", store.ErrBadOption)
		}
	}
	t := table{name: st.settings.prefix + "LOCK", columns: make(map[string]column)}
	rows, err := st.db.QueryContext(ctx, st.dialect.columns, t.name)
	if err != nil {
		return t, st.dialect.failure(err)
	}
	defer func() { _ = rows.Close() }() // what there was to read has been read
	for rows.Next() {
		var name string
		var c column
		if err := rows.Scan(&name, &c.kind, &c.strict); err != nil {
			return t, st.dialect.failure(err)
		}
		t.columns[name] = c
	}
	if err := rows.Err(); err != nil {
		return t, st.dialect.failure(err)
	}
	if t.unique, err = query[bool](ctx, st.db, st.dialect, st.dialect.unique, t.name); err != nil {
		return t, err
	}
	if st.dialect.engine != "" {
		transactional, err := query[bool](ctx, st.db, st.dialect, st.dialect.engine, t.name)
		t.plain = !transactional
		return t, err
	}
	return t, nil
}

// checkSpring decides which generation the table is of, and refuses one in which
// locks would not exclude everybody.
func (st *Store) checkSpring(ctx context.Context) error {
	t, err := st.springTable(ctx)
	if err != nil {
		return err
	}
	if len(t.columns) == 0 {
		return &SchemaError{t.name, "there is none; run MigrateSpring"}
	}
	if err := st.adopt(t); err != nil {
		return err
	}
	if st.settings.spring.generation == Spring7 {
		mixed, err := query[bool](ctx, st.db, st.dialect, "SELECT EXISTS (SELECT 1 FROM "+t.name+
			" WHERE EXPIRED_AFTER < CREATED_DATE AND CREATED_DATE > CURRENT_TIMESTAMP - INTERVAL '1' DAY)")
		if err != nil {
			return err
		}
		if mixed {
			return &SchemaError{t.name, "it has a row that was taken after its EXPIRED_AFTER without moving that forward: " +
				"a release of Spring Integration before 7.0 writes to the table, and would steal live locks"}
		}
	}
	if err := st.checkRoutines(ctx); err != nil {
		return err
	}
	return st.checkRegion(ctx, t)
}

// checkRegion refuses a region that others know by another name: locks would be shared by
// both, but not the counters of their tokens.
func (st *Store) checkRegion(ctx context.Context, t table) error {
	if st.dialect.otherRegion == "" {
		return nil
	}
	region := st.settings.spring.region
	other, err := query[string](ctx, st.db, st.dialect, fmt.Sprintf(st.dialect.otherRegion, st.settings.prefix), region, region, t.name)
	if err != nil || other == "" {
		return err
	}
	return &SchemaError{t.name, fmt.Sprintf("its column REGION does not tell %q from %q, which others use; name it as they do", region, other)}
}

// adopt takes the table's generation for the store's, or says why it can't.
func (st *Store) adopt(t table) error {
	refuse := func(why string, args ...any) error { return &SchemaError{t.name, fmt.Sprintf(why, args...)} }
	s := st.settings.spring
	expires, has7 := t.columns["expired_after"]
	created, has6 := t.columns["created_date"]
	found, stamp := Spring7, expires
	if !has7 {
		found, stamp = Spring6, created
	}
	switch {
	case !has6:
		return refuse("it has no column CREATED_DATE, and is no table of Spring Integration's")
	case has7 && !expires.strict:
		return refuse("its column EXPIRED_AFTER can be left out by an INSERT, so releases of Spring Integration before 7.0 " +
			"can use the table, and would steal live locks of 7.x and of ours; make it NOT NULL, without a default, when none is left")
	case s.generation != 0 && s.generation != found:
		return refuse("it is a table of %v, and %v was asked for: each steals live locks of the other", found, s.generation)
	case !isClock(stamp.kind):
		return refuse("its column %s is of type %s; by one that has a zone, or less than milliseconds, live locks would be stolen",
			found.column(), stamp.kind)
	case t.plain:
		return refuse("its engine has no transactions; it has to be InnoDB")
	case !t.unique:
		return refuse("nothing makes LOCK_KEY and REGION unique, so a lock could have two holders")
	}
	for name, length := range map[string]int{"lock_key": 36, "client_id": 36, "region": len([]rune(s.region))} {
		c, has := t.columns[name]
		if !has {
			return refuse("it has no column %s", strings.ToUpper(name))
		}
		if n, isText := textLength(c.kind); !isText || n < length {
			return refuse("its column %s is of type %s, too short for %d characters", strings.ToUpper(name), c.kind, length)
		}
	}
	s.generation = found
	return nil
}

// clockPattern: PostgreSQL's timestamp has microseconds unless it says otherwise,
// MySQL's datetime has none.
var clockPattern = regexp.MustCompile(`^(timestamp|timestamp\([3-6]\)) without time zone$|^datetime\([3-6]\)$`)

func isClock(kind string) bool { return clockPattern.MatchString(kind) }

var textPattern = regexp.MustCompile(`^(character varying|character|varchar|char|text)(?:\((\d+)\))?$`)

// textLength is how many characters a type of text takes.
func textLength(kind string) (n int, isText bool) {
	m := textPattern.FindStringSubmatch(kind)
	switch {
	case m == nil:
		return 0, false
	case m[1] == "text":
		return 1 << 16, true
	}
	n, err := strconv.Atoi(m[2])
	return n, err == nil
}
