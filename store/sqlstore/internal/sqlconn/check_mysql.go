// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"strings"

	"github.com/asynclock/asynclock-go/store"
)

// mySQLQuestions need no right. The isolation level is none of them: the routines set their own.
var mySQLQuestions = []question{
	{
		"server",
		[]string{"SELECT VERSION(), @@read_only NOT IN ('0', 'OFF'), @@log_bin AND @@binlog_format = 'STATEMENT'"},
		judgeMySQL,
	},
	{
		// 3 is MariaDB's, and as safe as 1.
		"durability",
		[]string{`SELECT CONCAT_WS(', ',
			IF(@@innodb_flush_log_at_trx_commit IN (1, 3), NULL, CONCAT('innodb_flush_log_at_trx_commit = ', @@innodb_flush_log_at_trx_commit)),
			IF(@@log_bin AND @@sync_binlog <> 1, CONCAT('sync_binlog = ', @@sync_binlog), NULL))`},
		judgeDurability("set innodb_flush_log_at_trx_commit and sync_binlog to 1"),
	},
	{
		// MySQL and MariaDB have the status in different tables.
		"connections",
		[]string{"SHOW GLOBAL STATUS LIKE 'Threads_connected'", "SELECT @@max_connections"},
		func(answer []string) store.Finding { return judgeConnections(answer[1], answer[2]) },
	},
}

func judgeMySQL(answer []string) store.Finding {
	version, _, _ := strings.Cut(answer[0], "-")
	found, name := store.Finding{Verdict: store.VerdictFail}, "MySQL "+version
	if strings.Contains(answer[0], "MariaDB") {
		name = "MariaDB " + version
	}
	switch {
	case answer[1] == "1":
		found.Fact = name + " is read-only (read_only), as replicas are"
		found.Fix = "connect to the primary, or set read_only to 0"
	case answer[2] == "1":
		found.Fact = name + " logs statements (binlog_format = STATEMENT) and refuses what locks write"
		found.Fix = "set binlog_format to MIXED or ROW, also for sessions that are open"
	default:
		found = store.Finding{Fact: name + " takes writes"}
	}
	return found
}
