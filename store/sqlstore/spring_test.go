// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// What UUIDConverter of Spring Integration makes of keys.
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
	d      Database
	table  string
	column string
	base   time.Duration
}

func asJava(t *testing.T, d Database, st *Store) java {
	t.Helper()
	j := java{t: t, d: d, table: st.settings.prefix + "LOCK", column: "EXPIRED_AFTER"}
	if st.settings.spring.generation == Spring6 {
		j.column, j.base = "CREATED_DATE", 10*time.Second
	}
	return j
}

// stamp is how Java writes that a lock ends in so long.
func (j java) stamp(in time.Duration) string {
	return time.Now().UTC().Add(in - j.base).Format(springTime)
}

// insert takes a key that nobody has, for so long.
func (j java) insert(key, region string, ttl time.Duration) {
	j.t.Helper()
	columns, values := "", ""
	if j.base == 0 {
		columns, values = ", CREATED_DATE", ", '"+j.stamp(0)+"'"
	}
	run(j.t, j.d, "INSERT INTO "+j.table+" (LOCK_KEY, REGION, CLIENT_ID, "+j.column+columns+
		") VALUES ('"+lockKey(key)+"', '"+region+"', '"+javaID+"', '"+j.stamp(ttl)+"'"+values+")")
}

// takes reports whether Java, in so long, would get a key that has a row, and takes it now
// if so.
func (j java) takes(key string, in time.Duration) bool {
	j.t.Helper()
	taken := texts(j.t, j.d, "SELECT LOCK_KEY FROM "+j.table+" WHERE REGION = 'DEFAULT' AND LOCK_KEY = '"+lockKey(key)+"' AND "+
		j.column+" < '"+j.stamp(in)+"'")
	if len(taken) == 0 {
		return false
	}
	run(j.t, j.d, "UPDATE "+j.table+" SET CLIENT_ID = '"+javaID+"', "+j.column+" = '"+j.stamp(long)+
		"' WHERE REGION = 'DEFAULT' AND LOCK_KEY = '"+lockKey(key)+"'")
	return true
}

// onGenerations runs a test on tables of each generation in each kind of database.
func onGenerations(t *testing.T, test func(t *testing.T, st *Store, j java)) {
	t.Helper()
	onEach(t, func(t *testing.T, d Database) {
		for _, g := range []Generation{Spring7, Spring6} {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				st := newSpringTables(t, d, WithGeneration(g))
				test(t, st, asJava(t, d, st))
			})
		}
	})
}

func TestJavaAndGoExcludeEachOther(t *testing.T) {
	t.Parallel()
	onGenerations(t, func(t *testing.T, st *Store, j java) {
		c := join(t, st)
		j.insert("theirs", "DEFAULT", long)
		got := c.session.Acquire(t.Context(), []store.AcquireRequest{{Key: "theirs", Owner: "a", TTL: long}})[0]
		if got.Status != store.Held || got.Remaining <= long/2 || got.Remaining > long || !strings.HasPrefix(got.Holder, "Spring JdbcLockRegistry 0f8fad5b") {
			t.Errorf("Acquire of what Java holds: got %+v, want Held by a JdbcLockRegistry for about %v", got, long)
		}
		if strings.Contains(got.Holder, javaID) {
			t.Errorf("holder: got %q, want no whole id, which is Java's secret", got.Holder)
		}
		if err := c.renew("theirs", "a"); !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew of what Java holds: got %v, want ErrStolen", err)
		}
		j.insert("elsewhere", "OTHER", long)
		c.hold(request("elsewhere", "a"))

		c.hold(request("ours", "a"))
		if j.takes("ours", 0) {
			t.Error("Java took what Go holds")
		}
		c.release("ours", "a")
		j.insert("ours", "DEFAULT", long) // fails if a row is left
	})
}

// TestLeaseLastsAsLongForJava: Java adds its own TTL to CREATED_DATE, whatever ours is.
func TestLeaseLastsAsLongForJava(t *testing.T) {
	t.Parallel()
	onGenerations(t, func(t *testing.T, st *Store, j java) {
		c := join(t, st)
		for key, ttl := range map[string]time.Duration{"short": long, "long": 10 * long} {
			q := request(key, key)
			q.TTL = ttl
			c.hold(q)
		}
		if j.takes("short", 0) {
			t.Error("Java took a live lease")
		}
		if !j.takes("short", long+time.Second) {
			t.Error("Java did not get what had expired")
		}
		if j.takes("long", long+time.Second) {
			t.Error("Java took a live lease of a long TTL")
		}
		if err := c.renew("short", "short"); !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew of what Java took: got %v, want ErrStolen", err)
		}
		if c.release("short", "short") {
			t.Error("Release of what Java took: got WasHeld true, want false")
		}
	})
}

func TestTokensRiseThroughTenuresOfJava(t *testing.T) {
	t.Parallel()
	onGenerations(t, func(t *testing.T, st *Store, j java) {
		c := join(t, st)
		first := c.hold(request("key", "a"))
		if !j.takes("key", long+time.Second) {
			t.Fatal("Java did not get what had expired")
		}
		run(t, j.d, "DELETE FROM "+j.table) // as Java's unlock does
		if second := c.hold(request("key", "b")); second.Token <= first.Token {
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
	onEach(t, func(t *testing.T, d Database) {
		keys := "(LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), "
		created, expires := "CREATED_DATE "+stamp[d.name]+" NOT NULL", "EXPIRED_AFTER "+stamp[d.name]
		for _, c := range []struct {
			name, columns, why string
			options            []SpringOption
		}{
			{"of nothing", "", "there is none", nil},
			{"of 6.x, and 7.x was named", keys + created + pk, "each steals live locks", []SpringOption{WithGeneration(Spring7)}},
			{"of 7.x, and 6.x was named", keys + created + ", " + expires + " NOT NULL" + pk, "each steals live locks", []SpringOption{WithGeneration(Spring6)}},
			{"that both can use", keys + created + ", " + expires + " NULL" + pk, "can be left out", nil},
			{"with whole seconds", keys + "CREATED_DATE " + coarse[d.name] + " NOT NULL" + pk, "less than milliseconds", nil},
			{"with a zone", keys + "CREATED_DATE " + zoned[d.name] + " NOT NULL" + pk, "has a zone", nil},
			{"without its key", keys + created + ")", "two holders", nil},
			{"with another key", keys + created + ", PRIMARY KEY (LOCK_KEY))", "two holders", nil},
			{"with short ids", strings.Replace(keys, "CLIENT_ID CHAR(36)", "CLIENT_ID CHAR(30)", 1) + created + pk, "too short", nil},
			{"of something else", "(LOCK_KEY CHAR(36))", "no column CREATED_DATE", nil},
			{"that 6.x writes to", keys + created + ", " + expires + " NOT NULL" + pk, "before 7.0 writes to the table", nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				prefix := newPrefix(t, d)
				options := append([]SpringOption{WithPrefix(prefix)}, c.options...)
				if c.columns != "" {
					run(t, d, "CREATE TABLE "+prefix+"LOCK "+c.columns)
				}
				if c.name == "that 6.x writes to" {
					now := time.Now().UTC()
					run(t, d, "INSERT INTO "+prefix+"LOCK VALUES ('k', 'DEFAULT', 'c', '"+now.Format(springTime)+"', '"+
						now.Add(-time.Minute).Format(springTime)+"')")
				} else if c.columns != "" {
					wantRefused(t, MigrateSpring(t.Context(), d, options...), prefix, c.why)
				}
				_, err := NewSpring(t.Context(), d, options...)
				wantRefused(t, err, prefix, c.why)
			})
		}
	})
}

func wantRefused(t *testing.T, err error, prefix, why string) {
	t.Helper()
	var schema *SchemaError
	if !errors.As(err, &schema) || schema.Table != prefix+"LOCK" || !strings.Contains(schema.Why, why) {
		t.Errorf("got %v, want a SchemaError that says %q", err, why)
	}
}

// TestGenerationChangedUnderTheStore: nobody goes by the wrong column because the
// table was migrated while a client ran.
func TestGenerationChangedUnderTheStore(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newSpringTables(t, d, WithGeneration(Spring6))
		prefix := st.settings.prefix
		run(t, d, "DROP TABLE "+prefix+"LOCK")
		if err := MigrateSpring(t.Context(), d, WithPrefix(prefix)); err != nil {
			t.Fatal(err)
		}
		var schema *SchemaError
		got := join(t, st).session.Acquire(t.Context(), []store.AcquireRequest{request("key", "a")})[0]
		if !errors.As(got.Err, &schema) {
			t.Errorf("Acquire by a client of 6.x in a table of 7.x: got %+v, want a SchemaError", got)
		}
	})
}

func TestMySQLRegionsAreASCII(t *testing.T) {
	t.Parallel()
	d := onMySQL(t)
	prefix := WithPrefix(newPrefix(t, d))
	if err := MigrateSpring(t.Context(), d, prefix, WithRegion("Süd")); !errors.Is(err, store.ErrBadOption) {
		t.Errorf("MigrateSpring: got %v, want ErrBadOption", err)
	}
	if _, err := NewSpring(t.Context(), d, prefix, WithRegion("Süd")); !errors.Is(err, store.ErrBadOption) {
		t.Errorf("NewSpring: got %v, want ErrBadOption", err)
	}
}

// TestRegionsThatDifferByCase: Java's table on MySQL takes one for the other, unless it was
// made otherwise, and PostgreSQL does not.
func TestRegionsThatDifferByCase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newSpringTables(t, d, WithRegion("Shop"))
		c, prefix := join(t, st), st.settings.prefix
		c.hold(request("key", "a"))
		open := func(region string) error {
			st, err := NewSpring(t.Context(), d, WithPrefix(prefix), WithRegion(region))
			if err == nil {
				st.Close()
			}
			return err
		}
		for _, region := range []string{"Shop", "Shop 2", DefaultRegion} {
			if err := open(region); err != nil {
				t.Errorf("NewSpring in the region %q beside Shop: got %v, want no error", region, err)
			}
		}
		if d.name == "postgres" {
			if err := open("SHOP"); err != nil {
				t.Errorf("NewSpring in the region SHOP beside Shop: got %v, want no error", err)
			}
			return
		}
		wantRefused(t, open("SHOP"), prefix, `does not tell "SHOP" from "Shop"`)
		run(t, d, "ALTER TABLE "+prefix+"LOCK MODIFY REGION VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL")
		if err := open("SHOP"); err != nil {
			t.Errorf("NewSpring where the table tells the regions apart: got %v, want no error", err)
		}
	})
}

// TestTableWhoseNameDiffersByCase: is not taken for Java's.
func TestTableWhoseNameDiffersByCase(t *testing.T) {
	t.Parallel()
	d := onMySQL(t)
	if texts(t, d, "SELECT @@lower_case_table_names")[0] != "0" {
		return // to such a server both names are one table's
	}
	prefix := newPrefix(t, d)
	other := strings.ToLower(prefix)
	t.Cleanup(func() { dropAll(t, d, other) })
	run(t, d, "CREATE TABLE "+other+"lock (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36), CREATED_DATE DATETIME(6)) ENGINE = MyISAM")
	_, err := NewSpring(t.Context(), d, WithPrefix(prefix))
	wantRefused(t, err, prefix, "there is none")
	if err := MigrateSpring(t.Context(), d, WithPrefix(prefix)); err != nil {
		t.Errorf("MigrateSpring beside a table whose name differs by case: got %v, want no error", err)
	}
	st, err := NewSpring(t.Context(), d, WithPrefix(prefix))
	if err != nil {
		t.Fatalf("NewSpring beside a table whose name differs by case: got %v, want no error", err)
	}
	st.Close()
}

func TestForgottenKeysOfJavasTable(t *testing.T) {
	t.Parallel()
	onGenerations(t, func(t *testing.T, st *Store, j java) {
		c := join(t, st)
		c.hold(request("free", "a"))
		c.release("free", "a")
		c.hold(request("held", "b"))
		run(t, j.d, "UPDATE "+j.table+"_LEASE SET LAST_USE = '2020-01-01'")
		run(t, j.d, map[string]string{"postgres": "SELECT ", "mysql": "CALL "}[j.d.name]+j.table+"_SWEEP('"+j.stamp(0)+"', 100)")
		if got := texts(t, j.d, "SELECT KEY_NAME FROM "+j.table+"_LEASE"); len(got) != 1 || got[0] != "held" {
			t.Errorf("names after the sweep: got %q, want the one that is held", got)
		}
	})
}
