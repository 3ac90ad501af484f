// SPDX-License-Identifier: Apache-2.0

package sqlconn

import "github.com/asynclock/asynclock-go/store"

// postgresQuestions need no right that a user of the database does not have.
var postgresQuestions = []question{
	{
		"server",
		[]string{"SELECT split_part(current_setting('server_version'), ' ', 1), pg_is_in_recovery()::text, current_setting('transaction_read_only')"},
		judgePostgres,
	},
	{
		"durability",
		[]string{`SELECT concat_ws(', ', CASE current_setting('fsync') WHEN 'off' THEN 'fsync = off' END,
			CASE current_setting('synchronous_commit') WHEN 'off' THEN 'synchronous_commit = off' END)`},
		judgeDurability("set fsync and synchronous_commit to on, the latter also for the store's user and its database"),
	},
	{
		// pg_stat_activity would hide from most users which of the rows are clients.
		"connections",
		[]string{`SELECT (SELECT sum(numbackends) FROM pg_stat_database)::text, (current_setting('max_connections')::int
			- current_setting('superuser_reserved_connections')::int - COALESCE(current_setting('reserved_connections', TRUE), '0')::int)::text`},
		func(answer []string) store.Finding { return judgeConnections(answer[0], answer[1]) },
	},
	{"isolation", []string{"SELECT current_setting('transaction_isolation')"}, judgeIsolation},
}

func judgePostgres(answer []string) store.Finding {
	found, name := store.Finding{Verdict: store.VerdictFail}, "PostgreSQL "+answer[0]
	switch {
	case answer[1] == "true":
		found.Fact = name + " is a replica and takes no locks"
		found.Fix = "connect to the primary; pgx finds it by target_session_attrs=read-write"
	case answer[2] == "on":
		found.Fact = name + " is read-only for the store's user (transaction_read_only) and takes no locks"
		found.Fix = "set default_transaction_read_only to off, for the server, the database and the user"
	default:
		found = store.Finding{Fact: name + " takes writes"}
	}
	return found
}

// judgeIsolation judges the level of statements. The routines refuse all levels but one.
func judgeIsolation(answer []string) store.Finding {
	if answer[0] == "read committed" {
		return store.Finding{Fact: "statements are READ COMMITTED, as locks need it"}
	}
	return store.Finding{
		Verdict: store.VerdictNote,
		Fact:    "the default isolation level is " + answer[0] + ", so each request takes two round trips more",
		Fix:     "set default_transaction_isolation to 'read committed' for the store's user",
	}
}
