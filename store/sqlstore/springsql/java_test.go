// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// The LOCK_KEYs here are those that UUIDConverter of Spring Integration makes.
func TestLockKeyIsJavas(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"foo":                                  "acbd18db-4cc2-385c-adef-654fccc4a4d8",
		"leader":                               "c444858e-0aae-3727-9a73-d2eae62321ad",
		"my-lock":                              "eda23b8c-64b2-3f01-8c10-660455d15168",
		"order:42":                             "d978d567-2fe1-37dc-b580-4df0b784b958",
		"héllo/世界":                             "4eb9512e-6102-3110-8f80-93f11709c2c1",
		"4F0C7A4E-1D4C-4B9F-9E6A-0A7F0B5F1C2D": "4f0c7a4e-1d4c-4b9f-9e6a-0a7f0b5f1c2d",
	} {
		if got := lockKey(key); got != want {
			t.Errorf("LOCK_KEY of %q: got %s, want %s", key, got, want)
		}
	}
	if a, b := clientID("owner"), clientID("other"); len(a) != 36 || a == b || strings.Contains(a, "owner") {
		t.Errorf("CLIENT_ID: got %s and %s, want two hashes of 36 characters", a, b)
	}
}

// javaID is a client id as Java's repositories have.
const javaID = "0f8fad5b-d9cb-469f-a165-70867728950e"

// java is what DefaultLockRepository would do, by its statements.
type java struct {
	t      *testing.T
	d      sqltest.Database
	table  string
	column string
	base   time.Duration
}

func asJava(t *testing.T, d sqltest.Database, st *Store) java {
	t.Helper()
	j := java{t: t, d: d, table: st.settings.prefix + "LOCK", column: "EXPIRED_AFTER"}
	if st.settings.version == Spring6 {
		j.column, j.base = "CREATED_DATE", 10*time.Second
	}
	return j
}

// stamp is how Java writes that a lock ends in so long.
func (j java) stamp(in time.Duration) string {
	return time.Now().UTC().Add(in - j.base).Format(timeFormat)
}

// insert takes a key that nobody has, for so long.
func (j java) insert(key, region string, ttl time.Duration) {
	j.t.Helper()
	columns, values := "", ""
	if j.base == 0 {
		columns, values = ", CREATED_DATE", ", '"+j.stamp(0)+"'"
	}
	j.d.Run(j.t, "INSERT INTO "+j.table+" (LOCK_KEY, REGION, CLIENT_ID, "+j.column+columns+
		") VALUES ('"+lockKey(key)+"', '"+region+"', '"+javaID+"', '"+j.stamp(ttl)+"'"+values+")")
}

// takes reports whether Java, in so long, would get a key that has a row, and takes it now
// if so.
func (j java) takes(key string, in time.Duration) bool {
	j.t.Helper()
	taken := j.d.Texts(j.t, "SELECT LOCK_KEY FROM "+j.table+" WHERE REGION = 'DEFAULT' AND LOCK_KEY = '"+lockKey(key)+"' AND "+
		j.column+" < '"+j.stamp(in)+"'")
	if len(taken) == 0 {
		return false
	}
	j.d.Run(j.t, "UPDATE "+j.table+" SET CLIENT_ID = '"+javaID+"', "+j.column+" = '"+j.stamp(sqltest.Long)+
		"' WHERE REGION = 'DEFAULT' AND LOCK_KEY = '"+lockKey(key)+"'")
	return true
}

// sweep does what one of many requests does besides.
func (j java) sweep() {
	j.t.Helper()
	j.d.RunRoutine(j.t, j.table+"_SWEEP('"+time.Now().UTC().Format(timeFormat)+"', 100)")
}

// onVersions runs a test on tables of each generation in each kind of database.
func onVersions(t *testing.T, test func(t *testing.T, st *Store, j java)) {
	t.Helper()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		for _, g := range []SpringVersion{Spring7, Spring6} {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				st := newTables(t, d, WithSpringVersion(g))
				test(t, st, asJava(t, d, st))
			})
		}
	})
}

func TestJavaAndGoExcludeEachOther(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		j.insert("theirs", "DEFAULT", sqltest.Long)
		got := c.Session.Acquire(t.Context(), []store.AcquireRequest{{Key: "theirs", Owner: "a", TTL: sqltest.Long}})[0]
		if got.Status != store.Held || got.Remaining <= sqltest.Long/2 || got.Remaining > sqltest.Long || !strings.HasPrefix(got.Holder, "Spring JdbcLockRegistry 0f8fad5b") {
			t.Errorf("Acquire of what Java holds: got %+v, want Held by a JdbcLockRegistry for about %v", got, sqltest.Long)
		}
		if strings.Contains(got.Holder, javaID) {
			t.Errorf("holder: got %q, want no whole id, which is Java's secret", got.Holder)
		}
		if err := c.Renew("theirs", "a"); !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew of what Java holds: got %v, want ErrStolen", err)
		}
		j.insert("elsewhere", "OTHER", sqltest.Long)
		c.Hold(sqltest.Request("elsewhere", "a"))

		c.Hold(sqltest.Request("ours", "a"))
		if j.takes("ours", 0) {
			t.Error("Java took what Go holds")
		}
		c.Release("ours", "a")
		j.insert("ours", "DEFAULT", sqltest.Long) // fails if a row is left
	})
}

// TestForceIsAboutOneHolding: a holder in Java has no token, so that only token 0 takes the key from
// it. The comparison leaves no row locked.
func TestForceIsAboutOneHolding(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		ours := c.Hold(sqltest.Request("key", "a")).Token
		if held, err := c.Session.Force(t.Context(), "key", ours); !held || err != nil {
			t.Errorf("Force about the holder's token: got %v, %v; want true", held, err)
		}
		j.insert("key", "DEFAULT", sqltest.Long)
		var other *store.OtherHolderError
		held, err := c.Session.Force(t.Context(), "key", ours)
		if !errors.As(err, &other) || held || other.Info.Token != 0 || !strings.HasPrefix(other.Info.Holder, "Spring JdbcLockRegistry 0f8fad5b") {
			t.Errorf("Force of Java's key about a token: got %v, %v; want it refused", held, err)
		}
		if err := c.Renew("key", "a"); !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew of what Java holds: got %v, want ErrStolen", err)
		}
		if held, err := c.Session.Force(t.Context(), "key", 0); !held || err != nil {
			t.Errorf("Force of Java's key about token 0: got %v, %v; want true", held, err)
		}
		if held, err := c.Session.Force(t.Context(), "key", ours); held || err != nil {
			t.Errorf("Force of a free key about a token: got %v, %v; want false", held, err)
		}
	})
}

// TestLeaseLastsAsLongForJava: Java adds its own TTL to CREATED_DATE, whatever ours is.
func TestLeaseLastsAsLongForJava(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		for key, ttl := range map[string]time.Duration{"short": sqltest.Long, "long": 10 * sqltest.Long} {
			q := sqltest.Request(key, key)
			q.TTL = ttl
			c.Hold(q)
		}
		if j.takes("short", 0) {
			t.Error("Java took a live lease")
		}
		if !j.takes("short", sqltest.Long+time.Second) {
			t.Error("Java did not get what had expired")
		}
		if j.takes("long", sqltest.Long+time.Second) {
			t.Error("Java took a live lease of a long TTL")
		}
		if err := c.Renew("short", "short"); !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew of what Java took: got %v, want ErrStolen", err)
		}
		if c.Release("short", "short") {
			t.Error("Release of what Java took: got WasHeld true, want false")
		}
	})
}

func TestTokensRiseThroughTenuresOfJava(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		first := c.Hold(sqltest.Request("key", "a"))
		if !j.takes("key", sqltest.Long+time.Second) {
			t.Fatal("Java did not get what had expired")
		}
		j.d.Run(t, "DELETE FROM "+j.table) // as Java's unlock does
		if second := c.Hold(sqltest.Request("key", "b")); second.Token <= first.Token {
			t.Errorf("token: got %d after %d, want it larger", second.Token, first.Token)
		}
	})
}

func TestTableOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	const pk = ", PRIMARY KEY (LOCK_KEY, REGION))"
	stamp := map[string]string{"postgres": "TIMESTAMP", "mysql": "DATETIME(6)"}
	coarse := map[string]string{"postgres": "TIMESTAMP(0)", "mysql": "DATETIME"}
	zoned := map[string]string{"postgres": "TIMESTAMPTZ", "mysql": "TIMESTAMP(6)"}
	including := map[string]string{"postgres": ", UNIQUE (LOCK_KEY, CREATED_DATE) INCLUDE (REGION))", "mysql": ", UNIQUE (LOCK_KEY, CREATED_DATE, REGION))"}
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		keys := "(LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), "
		created, expires := "CREATED_DATE "+stamp[d.Kind]+" NOT NULL", "EXPIRED_AFTER "+stamp[d.Kind]
		for _, c := range []struct {
			name, columns, why string
			options            []Option
		}{
			{"of nothing", "", "there is none", nil},
			{"of 6.x, and 7.x was named", keys + created + pk, "each steals live locks", []Option{WithSpringVersion(Spring7)}},
			{"of 7.x, and 6.x was named", keys + created + ", " + expires + " NOT NULL" + pk, "each steals live locks", []Option{WithSpringVersion(Spring6)}},
			{"that both can use", keys + created + ", " + expires + " NULL" + pk, "can be left out", nil},
			{"with whole seconds", keys + "CREATED_DATE " + coarse[d.Kind] + " NOT NULL" + pk, "less than milliseconds", nil},
			{"with a zone", keys + "CREATED_DATE " + zoned[d.Kind] + " NOT NULL" + pk, "has a zone", nil},
			{"without its key", keys + created + ")", "two holders", nil},
			{"with another key", keys + created + ", PRIMARY KEY (LOCK_KEY))", "two holders", nil},
			{"with short ids", strings.Replace(keys, "CLIENT_ID CHAR(36)", "CLIENT_ID CHAR(30)", 1) + created + pk, "too short", nil},
			{"of something else", "(LOCK_KEY CHAR(36))", "no column CREATED_DATE", nil},
			{"with a column of its own", keys + created + ", OWNER_NAME VARCHAR(10) NOT NULL" + pk, "has to have a value", nil},
			{"whose key only includes its region", keys + created + including[d.Kind], "two holders", nil},
			{"that 6.x writes to", keys + created + ", " + expires + " NOT NULL" + pk, "before 7.0 writes to the table", nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				prefix := d.NewPrefix(t)
				options := append([]Option{WithPrefix(prefix)}, c.options...)
				if c.columns != "" {
					d.Run(t, "CREATE TABLE "+prefix+"LOCK "+c.columns)
				}
				if c.name == "that 6.x writes to" {
					now := time.Now().UTC()
					d.Run(t, "INSERT INTO "+prefix+"LOCK VALUES ('k', 'DEFAULT', 'c', '"+now.Format(timeFormat)+"', '"+
						now.Add(-time.Minute).Format(timeFormat)+"')")
				} else if c.columns != "" {
					wantRefused(t, Migrate(t.Context(), d.Database, options...), prefix, c.why)
				}
				_, err := New(t.Context(), d.Database, options...)
				wantRefused(t, err, prefix, c.why)
			})
		}
	})
}

// TestTableOfTextsWithoutALength: is as good as another, on PostgreSQL.
func TestTableOfTextsWithoutALength(t *testing.T) {
	t.Parallel()
	d := sqltest.OnPostgres(t)
	prefix := d.NewPrefix(t)
	d.Run(t, "CREATE TABLE "+prefix+"LOCK (LOCK_KEY VARCHAR, REGION TEXT, CLIENT_ID VARCHAR, CREATED_DATE TIMESTAMP NOT NULL, "+
		"ID BIGINT GENERATED ALWAYS AS IDENTITY, EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))")
	sqltest.Join(t, newTables(t, d, WithPrefix(prefix))).Hold(sqltest.Request("key", "a"))
}

func wantRefused(t *testing.T, err error, prefix, why string) {
	t.Helper()
	var schema *SchemaError
	if !errors.As(err, &schema) || schema.Table != prefix+"LOCK" || !strings.Contains(schema.Why, why) {
		t.Errorf("got %v, want a SchemaError that says %q", err, why)
	}
}

// TestVersionChangedUnderTheStore: nobody goes by the wrong column because the
// table was migrated while a client ran.
func TestVersionChangedUnderTheStore(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithSpringVersion(Spring6))
		prefix := st.settings.prefix
		d.Run(t, "DROP TABLE "+prefix+"LOCK")
		if err := Migrate(t.Context(), d.Database, WithPrefix(prefix)); err != nil {
			t.Fatal(err)
		}
		var schema *SchemaError
		got := sqltest.Join(t, st).Session.Acquire(t.Context(), []store.AcquireRequest{sqltest.Request("key", "a")})[0]
		if !errors.As(got.Err, &schema) {
			t.Errorf("Acquire by a client of 6.x in a table of 7.x: got %+v, want a SchemaError", got)
		}
	})
}

func TestMySQLRegionsAreASCII(t *testing.T) {
	t.Parallel()
	d := sqltest.OnMySQL(t)
	prefix := WithPrefix(d.NewPrefix(t))
	if err := Migrate(t.Context(), d.Database, prefix, WithRegion("Süd")); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Migrate: got %v, want ErrInvalidOption", err)
	}
	if _, err := New(t.Context(), d.Database, prefix, WithRegion("Süd")); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("New: got %v, want ErrInvalidOption", err)
	}
}

// TestRegionsThatDifferByCase: Java's table on MySQL takes one for the other, unless it was
// made otherwise, and PostgreSQL does not.
func TestRegionsThatDifferByCase(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithRegion("Shop"))
		c, prefix := sqltest.Join(t, st), st.settings.prefix
		c.Hold(sqltest.Request("key", "a"))
		open := func(region string) error {
			st, err := New(t.Context(), d.Database, WithPrefix(prefix), WithRegion(region))
			if err == nil {
				st.Close()
			}
			return err
		}
		for _, region := range []string{"Shop", "Shop 2", DefaultRegion} {
			if err := open(region); err != nil {
				t.Errorf("New in the region %q beside Shop: got %v, want no error", region, err)
			}
		}
		if d.Kind == "postgres" {
			if err := open("SHOP"); err != nil {
				t.Errorf("New in the region SHOP beside Shop: got %v, want no error", err)
			}
			return
		}
		wantRefused(t, open("SHOP"), prefix, `does not tell "SHOP" from "Shop"`)
		d.Run(t, "ALTER TABLE "+prefix+"LOCK MODIFY REGION VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL")
		if err := open("SHOP"); err != nil {
			t.Errorf("New where the table tells the regions apart: got %v, want no error", err)
		}
	})
}

// TestRegionsThatAreOneHaveOneFence: also if both were new when their stores were opened.
func TestRegionsThatAreOneHaveOneFence(t *testing.T) {
	t.Parallel()
	d := sqltest.OnMySQL(t)
	st := newTables(t, d, WithRegion("Shop"))
	for i, region := range []string{"SHOP", "shop ", "Shop  "} {
		other := newTables(t, d, WithPrefix(st.settings.prefix), WithRegion(region))
		earlier, later := int64(10*i+1), int64(10*i+2)
		tx := d.Begin(t)
		if err := other.Guard(t.Context(), tx, "key", later); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		tx = d.Begin(t)
		if err := st.Guard(t.Context(), tx, "key", earlier); !errors.Is(err, fence.ErrStale) {
			t.Errorf("Guard in Shop with %d after %d in %q: got %v, want ErrStale", earlier, later, region, err)
		}
		_ = tx.Rollback()
	}
}

// TestTableWhoseNameDiffersByCase: is not taken for Java's.
func TestTableWhoseNameDiffersByCase(t *testing.T) {
	t.Parallel()
	d := sqltest.OnMySQL(t)
	if d.Texts(t, "SELECT @@lower_case_table_names")[0] != "0" {
		return // to such a server both names are one table's
	}
	prefix := d.NewPrefix(t)
	other := strings.ToLower(prefix)
	t.Cleanup(func() { d.DropAll(t, other) })
	d.Run(t, "CREATE TABLE "+other+"lock (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36), CREATED_DATE DATETIME(6)) ENGINE = MyISAM")
	_, err := New(t.Context(), d.Database, WithPrefix(prefix))
	wantRefused(t, err, prefix, "there is none")
	if err := Migrate(t.Context(), d.Database, WithPrefix(prefix)); err != nil {
		t.Errorf("Migrate beside a table whose name differs by case: got %v, want no error", err)
	}
	st, err := New(t.Context(), d.Database, WithPrefix(prefix))
	if err != nil {
		t.Fatalf("New beside a table whose name differs by case: got %v, want no error", err)
	}
	st.Close()
}

func TestForgottenKeysOfJavasTable(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, st *Store, j java) {
		c := sqltest.Join(t, st)
		c.Hold(sqltest.Request("free", "a"))
		c.Release("free", "a")
		c.Hold(sqltest.Request("held", "b"))
		j.d.Run(t, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		j.sweep()
		if got := j.d.Texts(t, "SELECT KEY_NAME FROM "+j.table+"_LEASE"); len(got) != 1 || got[0] != "held" {
			t.Errorf("names after the sweep: got %q, want the one that is held", got)
		}
	})
}
