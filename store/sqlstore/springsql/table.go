// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
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

// look looks at Java's table. Without one it has no columns.
func (st *Store) look(ctx context.Context) (t table, err error) {
	if err := st.checkCharacters(); err != nil {
		return t, err
	}
	ask := questionsTo[st.conn.Kind()]
	t.name = st.settings.prefix + "LOCK"
	if t.columns, err = st.columns(ctx, ask.columns, t.name); err != nil {
		return t, err
	}
	if t.unique, err = sqlconn.Value[bool](ctx, st.conn, ask.unique, t.name); err != nil {
		return t, err
	}
	if ask.engine != "" {
		transactional, err := sqlconn.Value[bool](ctx, st.conn, ask.engine, t.name)
		t.plain = !transactional
		return t, err
	}
	return t, nil
}

// checkCharacters refuses a region that the routines would take for another.
func (st *Store) checkCharacters() error {
	for _, r := range st.settings.region {
		if questionsTo[st.conn.Kind()].asciiRegions && r >= utf8.RuneSelf {
			return fmt.Errorf("%w: on MySQL a region has to be ASCII", store.ErrInvalidOption)
		}
	}
	return nil
}

// columns are those of a table, by a question for them.
func (st *Store) columns(ctx context.Context, question, name string) (map[string]column, error) {
	rows, err := st.conn.DB().QueryContext(ctx, question, name)
	if err != nil {
		return nil, st.conn.Failure(err)
	}
	defer func() { _ = rows.Close() }() // what there was to read has been read
	all := make(map[string]column)
	for rows.Next() {
		var name string
		var c column
		if err := rows.Scan(&name, &c.kind, &c.strict); err != nil {
			return nil, st.conn.Failure(err)
		}
		all[name] = c
	}
	if err := rows.Err(); err != nil {
		return nil, st.conn.Failure(err)
	}
	return all, nil
}

// check decides which releases the table is for, and refuses one in which locks would not
// exclude everybody.
func (st *Store) check(ctx context.Context) error {
	t, err := st.look(ctx)
	if err != nil {
		return err
	}
	if err := st.adopt(t); err != nil {
		return err
	}
	if err := st.checkRows(ctx, t); err != nil {
		return err
	}
	if err := st.conn.CheckRoutines(ctx); err != nil {
		return err
	}
	if err := st.conn.CheckWrites(ctx, "'2000-01-01', 1"); err != nil { // so early that no row of Java's has ended
		return err
	}
	return st.checkRegion(ctx, t)
}

// checkRows refuses a table of 7.x that has rows which an older release wrote.
func (st *Store) checkRows(ctx context.Context, t table) error {
	if st.settings.version != Spring7 {
		return nil
	}
	mixed, err := sqlconn.Value[bool](ctx, st.conn, "SELECT EXISTS (SELECT 1 FROM "+t.name+
		" WHERE EXPIRED_AFTER < CREATED_DATE AND CREATED_DATE > CURRENT_TIMESTAMP - INTERVAL '1' DAY)")
	if err == nil && mixed {
		err = &SchemaError{Table: t.name, Why: "it has a row that was taken after its EXPIRED_AFTER without moving that forward: " +
			"a release of Spring Integration before 7.0 writes to the table, and would steal live locks"}
	}
	return err
}

// checkRegion refuses a region that others know by another name. Both names would share
// locks, but not the counters of their tokens. If both are new, the fences have one name at least.
func (st *Store) checkRegion(ctx context.Context, t table) error {
	ask := questionsTo[st.conn.Kind()]
	if ask.anyCase != "" || strings.HasPrefix(t.columns["region"].kind, "character(") { // spaces at the end mean nothing there
		st.settings.fence = strings.TrimRight(st.settings.fence, " ")
	}
	if ask.anyCase == "" {
		return nil
	}
	anyCase, err := sqlconn.Value[bool](ctx, st.conn, ask.anyCase, t.name)
	if err != nil || !anyCase {
		return err
	}
	region := st.settings.region
	st.settings.fence = strings.ToUpper(st.settings.fence)
	other, err := sqlconn.Value[string](ctx, st.conn, fmt.Sprintf(ask.otherRegion, st.settings.prefix), region, region)
	if err != nil || other == "" {
		return err
	}
	return &SchemaError{Table: t.name, Why: fmt.Sprintf("its column REGION does not tell %q from %q, which others use; name it as they do", region, other)}
}

// adopt takes the table's releases for the store's, or says why it can't.
func (st *Store) adopt(t table) error {
	v, err := st.fit(t)
	if err == nil {
		st.settings.version = v
	}
	return err
}

// fit returns the table's releases, or why the store can't use it.
func (st *Store) fit(t table) (SpringVersion, error) {
	v, why := t.version()
	s := st.settings
	switch {
	case len(t.columns) == 0:
		why = "there is none; run Migrate"
	case why != "":
	case s.version != 0 && s.version != v:
		why = fmt.Sprintf("it is a table of %v, and %v was asked for: each steals live locks of the other", v, s.version)
	default:
		why = t.unfit(v, len([]rune(s.region)))
	}
	if why != "" {
		return 0, &SchemaError{Table: t.name, Why: why}
	}
	return v, nil
}

// version is which releases the table is for, or why it is for none.
func (t table) version() (v SpringVersion, why string) {
	expires, has7 := t.columns["expired_after"]
	_, has6 := t.columns["created_date"]
	switch {
	case !has6:
		return 0, "it has no column CREATED_DATE, and is no table of Spring Integration's"
	case has7 && !expires.strict:
		return 0, "its column EXPIRED_AFTER can be left out by an INSERT, so releases of Spring Integration before 7.0 " +
			"can use the table, and would steal live locks of 7.x and of ours; make it NOT NULL, without a default, when none is left"
	case has7:
		return Spring7, ""
	}
	return Spring6, ""
}

// unfit returns why locks in the table would not exclude everybody, or an empty text. The
// argument region is the number of characters of the longest region name that is needed.
func (t table) unfit(v SpringVersion, region int) string {
	stamp := t.columns[strings.ToLower(v.column())]
	switch {
	case !isClock(stamp.kind):
		return fmt.Sprintf("its column %s is of type %s; by one that has a zone, or less than milliseconds, live locks would be stolen",
			v.column(), stamp.kind)
	case t.plain:
		return "its engine has no transactions; it has to be InnoDB"
	case !t.unique:
		return "nothing makes LOCK_KEY and REGION unique, so a lock could have two holders"
	}
	for name, length := range map[string]int{"lock_key": 36, "client_id": 36, "region": region} {
		c, has := t.columns[name]
		if !has {
			return "it has no column " + strings.ToUpper(name)
		}
		if n, isText := textLength(c.kind); !isText || n < length {
			return fmt.Sprintf("its column %s is of type %s, too short for %d characters", strings.ToUpper(name), c.kind, length)
		}
	}
	for name, c := range t.columns {
		if c.strict && !javasColumns[name] {
			return fmt.Sprintf("its column %s has to have a value, which nobody gives it", strings.ToUpper(name))
		}
	}
	return ""
}

// javasColumns are those that Java and Go write.
var javasColumns = map[string]bool{"lock_key": true, "region": true, "client_id": true, "created_date": true, "expired_after": true}

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
	case m[1] == "text", m[0] == "character varying": // of any length
		return 1 << 16, true
	}
	n, err := strconv.Atoi(m[2])
	return n, err == nil
}
