// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"archive/zip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

// A table is one of Java's, and how a JdbcLockRegistry for it is made.
type table struct {
	kind kind
	url  string // of the server, for Go
	db   *sql.DB
	release
	prefix     string
	region     string
	ttl        time.Duration // of Java's registry or repository
	lease      time.Duration // the TTL of Go's leases
	options    []string      // of the JVM
	parameters string        // of the JDBC URL, after a question mark
}

// A release is of a line that makes tables of a generation.
type release struct {
	line    string // a directory below ASYNCLOCK_SPRING
	version springsql.SpringVersion
}

var newest = release{"7.1", springsql.Spring7}

// since7 and before7 are the releases that stand for their generation. Every day they
// are those that the tests for Redis play against, too.
var since7, before7 = func() (release, release) {
	if kit.Nightly() {
		return release{"7.0", springsql.Spring7}, release{"6.5", springsql.Spring6}
	}
	return newest, release{"6.5-old", springsql.Spring6}
}()

// A jdbcPlace is a release that the tests play against, and where.
type jdbcPlace struct {
	kind kind
	release
}

// jdbcPlaces are all there are. 7.1 and 6.5 hand a java.sql.Timestamp to the driver, 7.0
// a LocalDateTime.
var jdbcPlaces = func() []jdbcPlace {
	places := []jdbcPlace{{postgres, since7}, {postgres, before7}, {mariaDB, since7}}
	if kit.Nightly() {
		places = append(places, jdbcPlace{postgres, newest})
	}
	return places
}()

// onEachTable runs a test in each place, on a table of its own, several at once.
func onEachTable(t *testing.T, test func(*testing.T, table)) {
	t.Helper()
	t.Parallel()
	onEachTableAlone(t, func(t *testing.T, b table) {
		t.Parallel()
		test(t, b)
	})
}

// onEachTableAlone is onEachTable, one after the other.
func onEachTableAlone(t *testing.T, test func(*testing.T, table)) {
	t.Helper()
	kit.Require(t, "ASYNCLOCK_SPRING")
	for _, p := range jdbcPlaces {
		t.Run(p.kind.name+"/"+p.line, func(t *testing.T) {
			test(t, newTable(t, p.kind, p.release))
		})
	}
}

// newTable makes a table as a release of Java does, and beside it what Go needs.
func newTable(t *testing.T, k kind, r release) table {
	t.Helper()
	b := javaTable(t, k, r)
	if err := springsql.Migrate(t.Context(), k.database(b.db), springsql.WithPrefix(b.prefix)); err != nil {
		t.Fatal(err)
	}
	return b
}

// javaTable makes a table by the statement that a release of Java comes with.
func javaTable(t *testing.T, k kind, r release) table {
	t.Helper()
	address := kit.Require(t, k.variable)
	b := table{
		kind: k, url: address, db: k.open(t, address), release: r,
		prefix: "J" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12] + "_",
		region: springsql.DefaultRegion, ttl: long, lease: long,
	}
	t.Cleanup(func() { b.drop(t) })
	b.exec(t, strings.ReplaceAll(javaStatement(t, k, r.line), "INT_LOCK", b.prefix+"LOCK"))
	return b
}

var createLock = regexp.MustCompile(`CREATE TABLE INT_LOCK\s[^;]*`)

// javaStatement is how a release of Java creates INT_LOCK, as its jar says.
func javaStatement(t *testing.T, k kind, line string) string {
	t.Helper()
	pattern := filepath.Join(kit.Require(t, "ASYNCLOCK_SPRING"), "spring-"+line, "lib", "spring-integration-jdbc-*.jar")
	jars, err := filepath.Glob(pattern)
	if err != nil || len(jars) != 1 {
		t.Fatalf("%s: got %v, %v; want one file", pattern, jars, err)
	}
	jar, err := zip.OpenReader(jars[0])
	if err != nil {
		t.Fatal(err)
	}
	defer jar.Close()
	file, err := jar.Open("org/springframework/integration/jdbc/schema-" + k.name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	statement := createLock.FindString(string(text))
	if statement == "" {
		t.Fatalf("no INT_LOCK in the tables of %s", jars[0])
	}
	return statement
}

func (b table) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := b.db.ExecContext(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// drop drops all that begins with the table's prefix.
func (b table) drop(t *testing.T) {
	t.Helper()
	for _, query := range b.kind.drops {
		for _, statement := range b.texts(t, strings.ReplaceAll(query, "INT_", b.prefix)) {
			b.exec(t, statement)
		}
	}
}

// texts returns what a query finds, which is one column of text.
func (b table) texts(t *testing.T, query string) []string {
	t.Helper()
	rows, err := b.db.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var texts []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return texts
}

// change changes one row behind both languages' backs.
func (b table) change(t *testing.T, statement string) {
	t.Helper()
	result, err := b.db.ExecContext(t.Context(), strings.ReplaceAll(statement, "INT_", b.prefix))
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%s: got %d rows, %v; want one", statement, n, err)
	}
}

// openPeer makes a JdbcLockRegistry in the process that the tests share.
func (b table) openPeer(t *testing.T) *javapeer.Peer {
	t.Helper()
	return warm(b.openStranger(t))
}

// openStranger is openPeer for a release that the table may not be made for.
func (b table) openStranger(t *testing.T) *javapeer.Peer {
	t.Helper()
	return b.open(t, processes.Process(t, jar(t, b.line), b.options...))
}

// open makes a JdbcLockRegistry, which ends with the test.
func (b table) open(t *testing.T, process *javapeer.Process) *javapeer.Peer {
	t.Helper()
	address, user, password := b.kind.forJava(t, b.url)
	address += b.parameters
	return process.Open(t, "jdbc", address, user, password, b.prefix, b.region, fmt.Sprint(b.ttl.Milliseconds()))
}

// inZone is the same table for sessions of Go in a zone of time.
func (b table) inZone(t *testing.T, z zone) table {
	t.Helper()
	b.url = b.kind.zoned(t, b.url, z)
	b.db = b.kind.open(t, b.url)
	return b
}

// store opens the table.
func (b table) store(t *testing.T, options ...springsql.Option) *springsql.Store {
	t.Helper()
	store, err := b.sqlPart().open(t.Context(), b.db, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// client makes a client of Go's on the table.
func (b table) client(t *testing.T, options ...springsql.Option) *asynclock.Client {
	t.Helper()
	client, err := asynclock.New(b.store(t, options...), asynclock.WithTTL(b.lease))
	if err != nil {
		t.Fatal(err)
	}
	closeWithTest(t, client)
	return client
}

// column is the one that says when a lock ends, and base the seconds that readers
// add to it.
func (b table) column() (name string, base time.Duration) {
	if b.version == springsql.Spring6 {
		return "CREATED_DATE", b.ttl
	}
	return "EXPIRED_AFTER", 0
}

// end has the table's one lock end so long from now, by the server's clock.
func (b table) end(t *testing.T, in time.Duration) {
	t.Helper()
	name, base := b.column()
	seconds := fmt.Sprintf("%.6f", (in - base).Seconds())
	b.change(t, "UPDATE INT_LOCK SET "+name+" = "+b.kind.utc+" + INTERVAL '"+seconds+"' SECOND")
}
