-- SPDX-License-Identifier: Apache-2.0
--
-- Locks shared with Spring Integration 7.x, on MySQL 8.0 and MariaDB 10.6 or newer. Migrate
-- runs this file, and replaces the prefix INT_ if another one is set. The command line client
-- runs it as it is. It can be run again, also by a later release. Requests that come while a
-- routine is being replaced are tried again.
--
-- For releases up to 6.5, lines that end in "-- 7.x" are left out and EXPIRED_AFTER becomes
-- CREATED_DATE everywhere. MigrationSQL prints that version.
DELIMITER //

-- Java's own table, as its releases create it.
CREATE TABLE IF NOT EXISTS INT_LOCK (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE DATETIME(6) NOT NULL, -- 7.x
	EXPIRED_AFTER DATETIME(6) NOT NULL,
	PRIMARY KEY (LOCK_KEY, REGION)
) ENGINE = InnoDB
//
-- A row for each key that a Go client has used, with what Java's table has no column for: the
-- key's name, of which LOCK_KEY is a hash, its holder in words, and its last token. Java
-- neither reads nor writes this table. Only INT_LOCK decides whether a lock is held.
CREATE TABLE IF NOT EXISTS INT_LOCK_LEASE (
	LOCK_KEY CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	REGION VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	KEY_NAME VARBINARY(1536) NOT NULL,
	CLIENT_ID CHAR(36) CHARACTER SET ascii COLLATE ascii_bin, -- of the last Go holder
	HOLDER VARBINARY(512) NOT NULL DEFAULT '',
	TOKEN BIGINT NOT NULL DEFAULT 0,
	CLOCKED BOOLEAN NOT NULL DEFAULT FALSE, -- the token came from the clock
	LAST_USE DATE NOT NULL,
	PRIMARY KEY (LOCK_KEY, REGION),
	KEY (LAST_USE)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- Owners that were withdrawn while one of their requests had no answer yet.
CREATE TABLE IF NOT EXISTS INT_LOCK_GONE (
	CLIENT_ID CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	REGION VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	GONE_UNTIL DATETIME(6) NOT NULL,
	PRIMARY KEY (CLIENT_ID, REGION),
	KEY (GONE_UNTIL)
) ENGINE = InnoDB
//

-- The largest token of each key that has guarded a transaction. These rows must never be
-- deleted: without its row, a holder that overslept could write.
CREATE TABLE IF NOT EXISTS INT_LOCK_FENCE (
	`key` VARBINARY(2048) NOT NULL PRIMARY KEY, -- REGION, "%%" and LOCK_KEY
	token BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//

-- The routines take {"schema", "region", "now", "base", "items"} and answer {"clock",
-- "items"}, with an answer for each item, in the same order, as one transaction. "now" is the
-- client's clock in UTC, because Java compares with it. "base" is what Java adds to the
-- column that says when a lock ends: nothing for EXPIRED_AFTER, the TTL of Java's
-- repositories for CREATED_DATE. So a row is live if that column is not before now - base. At
-- equality a lock is still held, as in Java. Durations are in microseconds. "clock" is the
-- server's, since 1970. The routines refuse a client that takes the table for one of another
-- generation.
--
-- A request of one item waits for its rows, for some milliseconds. Then nothing is done, and the
-- client sends it again later: its connection is the application's. A request of several items
-- waits for none, because it would delay others that need its other rows, and their renewals. It
-- answers s: -4 for an item whose rows another transaction has locked. The client then sends this
-- item alone. If another transaction is about to make a row that it needs, nothing is done, and
-- the client sends each item alone.
-- A statement that locks both rows of a key begins with the row of INT_LOCK_LEASE.
--
-- After its COMMIT a routine must not fail because another routine is missing, which a
-- migration may cause. The failed request would be taken for one that has done nothing.
-- Answers are bytes, which no connection's character set changes.
--
-- Texts that are compared with Java's columns are ASCII, which is compatible with every
-- character set and collation of these columns.

DROP PROCEDURE IF EXISTS INT_LOCK_BEGIN
//
-- Begin the transaction of a request.
CREATE PROCEDURE INT_LOCK_BEGIN(
	IN request LONGTEXT CHARACTER SET utf8mb4,
	OUT v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin, OUT v_now DATETIME(6), OUT v_live DATETIME(6))
BEGIN
	DECLARE v_base BIGINT DEFAULT JSON_EXTRACT(request, '$.base');
	-- A request must not go on for long after its client has given it up. The application's
	-- own setting is restored when the routine ends, or by the client. The variable that keeps it has no prefix of
	-- the tables.
	SET @asynclockPatience = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED);
	SET @@innodb_lock_wait_timeout = 1;
	-- That setting has seconds only. So a row that is locked is asked for again each millisecond, up
	-- to this moment.
	SET @asynclock_until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
		+ COALESCE(JSON_EXTRACT(request, '$.items[0].in_line'), 20000);
	IF JSON_UNQUOTE(JSON_EXTRACT(request, '$.schema')) <> 'EXPIRED_AFTER 1' THEN
		SIGNAL SQLSTATE 'AL002' SET MESSAGE_TEXT = 'asynclock: these routines go by EXPIRED_AFTER, the client by something else';
	END IF;
	SET v_region = JSON_UNQUOTE(JSON_EXTRACT(request, '$.region'));
	SET v_now = JSON_UNQUOTE(JSON_EXTRACT(request, '$.now'));
	SET v_live = v_now - INTERVAL v_base MICROSECOND;
	-- Under autocommit = 0 the connection's last user may have left a transaction open, in
	-- which the level can't be set. BEGIN would end that transaction, too.
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	START TRANSACTION;
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_HOLDER
//
-- The holder of a key, for people to read: held, left, holder, token, or client if Java holds
-- it.
CREATE PROCEDURE INT_LOCK_HOLDER(
	IN v_key CHAR(36) CHARACTER SET ascii COLLATE ascii_bin, IN v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin,
	IN v_live DATETIME(6), OUT answer LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE CONTINUE HANDLER FOR NOT FOUND SET answer = '{"s": 3, "held": false}';
	SELECT CONCAT('{"s": 3, "held": true, "left": ', COALESCE(TIMESTAMPDIFF(MICROSECOND, v_live, k.EXPIRED_AFTER), 9000000000000000000), -- null: the 0th of a month
		', "holder": ', JSON_QUOTE(CONVERT(COALESCE(l.HOLDER, '') USING utf8mb4)), ', "token": ', COALESCE(l.TOKEN, 0),
		', "client": ', JSON_QUOTE(IF(l.LOCK_KEY IS NULL, LEFT(COALESCE(k.CLIENT_ID, '?'), 8), '')),
		', "key": ', JSON_QUOTE(v_key), ', "name": ', JSON_QUOTE(CONVERT(COALESCE((SELECT KEY_NAME FROM INT_LOCK_LEASE
			WHERE LOCK_KEY = v_key AND REGION = v_region), '') USING utf8mb4)), '}')
		INTO answer
		FROM INT_LOCK k LEFT JOIN INT_LOCK_LEASE l
			ON l.LOCK_KEY = v_key AND l.REGION = v_region AND l.CLIENT_ID = k.CLIENT_ID
		WHERE k.LOCK_KEY = v_key AND k.REGION = v_region AND k.EXPIRED_AFTER >= v_live;
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_TAKE
//
-- Lock the key's row of INT_LOCK_LEASE, which is made if there is none, and its row of
-- INT_LOCK, if there is one. Without v_wait this is done only if no other transaction has
-- them locked. As long as we have the first row, Go's requests for this key come one after
-- the other.
CREATE PROCEDURE INT_LOCK_TAKE(
	IN v_key CHAR(36) CHARACTER SET ascii COLLATE ascii_bin, IN v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin,
	IN v_name VARBINARY(1536), IN v_wait BOOLEAN, OUT v_taken BOOLEAN)
BEGIN
	DECLARE v_found, v_rows INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	find: LOOP
		SELECT 1 INTO v_found FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region FOR UPDATE SKIP LOCKED;
		IF v_found = 1 THEN
			LEAVE find;
		END IF;
		SELECT COUNT(*) INTO v_rows FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region;
		IF v_rows = 0 OR NOT v_wait THEN
			LEAVE find;
		END IF;
		IF TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= @asynclock_until THEN
			SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'asynclock: the row is locked';
		END IF;
		DO SLEEP(0.001);
	END LOOP;
	IF v_found = 0 AND v_rows = 0 THEN
		-- A row that another transaction is about to make shows only by waiting for it: not at
		-- all in MariaDB, for a second in MySQL.
		SET @@innodb_lock_wait_timeout = VERSION() NOT LIKE '%MariaDB%';
		INSERT INTO INT_LOCK_LEASE (LOCK_KEY, REGION, KEY_NAME, LAST_USE) VALUES (v_key, v_region, v_name, UTC_DATE())
			ON DUPLICATE KEY UPDATE LAST_USE = VALUES(LAST_USE);
		SET @@innodb_lock_wait_timeout = 1;
		SET v_found = 1;
	END IF;
	SET v_taken = v_found;
	IF v_taken THEN
		CALL INT_LOCK_FIND(v_key, v_region, v_wait, v_taken);
	END IF;
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_FIND
//
-- Lock the row of INT_LOCK, if there is one. The result is true if the row is ours now or
-- does not exist. Without v_wait it is false if another transaction has the row locked.
CREATE PROCEDURE INT_LOCK_FIND(
	IN v_key CHAR(36) CHARACTER SET ascii COLLATE ascii_bin, IN v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin,
	IN v_wait BOOLEAN, OUT v_taken BOOLEAN)
BEGIN
	DECLARE v_found, v_rows INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	find: LOOP
		SELECT 1 INTO v_found FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region FOR UPDATE SKIP LOCKED;
		IF v_found = 1 THEN
			LEAVE find;
		END IF;
		SELECT COUNT(*) INTO v_rows FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region;
		IF v_rows = 0 OR NOT v_wait THEN
			LEAVE find;
		END IF;
		IF TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= @asynclock_until THEN
			SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'asynclock: the row is locked';
		END IF;
		DO SLEEP(0.001);
	END LOOP;
	SET v_taken = v_found = 1 OR v_rows = 0;
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_ACQUIRE
//
-- Acquire: take the key if nobody has it. A repetition for the same owner extends the holding
-- and answers the same.
--
-- items    key, name, owner, ttl, holder
-- answers  s: 1 granted (token, clocked), 3 held (what INT_LOCK_HOLDER says), 5 gone, -4 a
--          row is locked
CREATE PROCEDURE INT_LOCK_ACQUIRE(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_key, v_owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_client TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin; -- whatever is there
	DECLARE v_now, v_live, v_until, v_stamp DATETIME(6);
	DECLARE v_ttl, v_token, v_clock BIGINT;
	DECLARE v_clocked, v_taken BOOLEAN;
	DECLARE v_alone BOOLEAN DEFAULT JSON_LENGTH(request, '$.items') = 1;
	DECLARE v_got, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL INT_LOCK_BEGIN(request, v_region, v_now, v_live);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET q = JSON_EXTRACT(request, CONCAT('$.items[', i, ']'));
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(q, '$.key')), v_owner = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
		SET v_ttl = JSON_EXTRACT(q, '$.ttl'), v_answer = NULL, v_client = NULL, v_until = NULL, v_got = 0;
		SET v_stamp = v_live + INTERVAL v_ttl MICROSECOND;
		SELECT CLIENT_ID, EXPIRED_AFTER INTO v_client, v_until FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region;
		-- A poll while another has the key writes nothing, and locks nothing.
		IF v_until IS NULL OR v_client = v_owner OR v_until < v_live THEN
			CALL INT_LOCK_TAKE(v_key, v_region, JSON_UNQUOTE(JSON_EXTRACT(q, '$.name')), v_alone, v_taken);
			SELECT TOKEN, CLOCKED INTO v_token, v_clocked FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region;
			SET v_client = NULL, v_until = NULL;
			SELECT CLIENT_ID, EXPIRED_AFTER INTO v_client, v_until FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region;
			IF NOT v_taken THEN
				SET v_answer = '{"s": -4}';
			ELSEIF v_client = v_owner AND v_until >= v_live THEN
				UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, v_stamp) WHERE LOCK_KEY = v_key AND REGION = v_region;
				SET v_answer = CONCAT('{"s": 1, "token": ', v_token, ', "clocked": ', IF(v_clocked, 'true', 'false'), '}');
			ELSEIF v_until IS NULL OR v_until < v_live THEN
				SET v_got = 1;
			END IF;
		END IF;
		IF v_answer IS NULL AND EXISTS (SELECT 1 FROM INT_LOCK_GONE
			WHERE CLIENT_ID = v_owner AND REGION = v_region AND GONE_UNTIL > UTC_TIMESTAMP(6))
		THEN
			SET v_answer = '{"s": 5}';
		ELSEIF v_got = 1 THEN
			IF v_until IS NULL THEN
				-- A row that another transaction is about to make shows only by waiting for it: not at
				-- all in MariaDB, for a second in MySQL.
				SET @@innodb_lock_wait_timeout = VERSION() NOT LIKE '%MariaDB%';
				INSERT IGNORE INTO INT_LOCK (
					LOCK_KEY, REGION, CLIENT_ID,
					CREATED_DATE, -- 7.x
					EXPIRED_AFTER)
					VALUES (
					v_key, v_region, v_owner,
					v_now, -- 7.x
					v_stamp);
				SET v_got = ROW_COUNT(); -- none if Java was first
				SET @@innodb_lock_wait_timeout = 1;
			ELSE
				UPDATE INT_LOCK SET CLIENT_ID = v_owner, EXPIRED_AFTER = v_stamp WHERE LOCK_KEY = v_key AND REGION = v_region;
			END IF;
			IF v_got = 1 THEN
				SET v_clock = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
				SET v_clocked = v_clock > v_token, v_token = GREATEST(v_token + 1, v_clock);
				UPDATE INT_LOCK_LEASE SET KEY_NAME = JSON_UNQUOTE(JSON_EXTRACT(q, '$.name')), CLIENT_ID = v_owner,
					HOLDER = JSON_UNQUOTE(JSON_EXTRACT(q, '$.holder')), LAST_USE = UTC_DATE(),
					TOKEN = v_token, CLOCKED = v_clocked WHERE LOCK_KEY = v_key AND REGION = v_region;
				SET v_answer = CONCAT('{"s": 1, "token": ', v_token, ', "clocked": ', IF(v_clocked, 'true', 'false'), '}');
			END IF;
		END IF;
		IF v_answer IS NULL THEN
			CALL INT_LOCK_HOLDER(v_key, v_region, v_live, v_answer);
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), v_answer), i = i + 1;
	END WHILE;
	COMMIT;
	-- So rows are deleted eight times as fast as they are made, even if each key is used only
	-- once.
	IF RAND() < 0.02 * JSON_LENGTH(request, '$.items') THEN
		BEGIN
			DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK; -- others will sweep
			CALL INT_LOCK_SWEEP(v_live, GREATEST(400, 8 * JSON_LENGTH(request, '$.items')));
		END;
	END IF;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_SWEEP
//
-- Sweep: forget keys that no Go client has used for a day, and owners that are not heard of
-- any more, up to v_limit of each. It waits for no row. The key's row in INT_LOCK goes, too,
-- if it expired more than a day ago by both the client's clock and the server's. Java would
-- leave it: it only removes rows that it made itself, and the row of a key that is held back
-- has an id that nobody has.
--
-- A row whose token is ahead of the clock stays, because a new row would begin at the clock.
CREATE PROCEDURE INT_LOCK_SWEEP(IN v_live DATETIME(6), IN v_limit INT)
BEGIN
	DECLARE v_key, v_client CHAR(36) CHARACTER SET ascii COLLATE ascii_bin DEFAULT '';
	DECLARE v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_dead DATETIME(6) DEFAULT LEAST(v_live, UTC_TIMESTAMP(6)) - INTERVAL 1 DAY;
	DECLARE v_taken BOOLEAN;
	DECLARE i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_key = NULL, v_client = NULL;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	START TRANSACTION;
	WHILE i < v_limit AND v_client IS NOT NULL DO
		SELECT CLIENT_ID, REGION INTO v_client, v_region FROM INT_LOCK_GONE WHERE GONE_UNTIL < UTC_TIMESTAMP(6)
			ORDER BY GONE_UNTIL LIMIT 1 FOR UPDATE SKIP LOCKED;
		DELETE FROM INT_LOCK_GONE WHERE CLIENT_ID = v_client AND REGION = v_region;
		SET i = i + 1;
	END WHILE;
	SET i = 0, v_key = '';
	WHILE i < v_limit AND v_key IS NOT NULL DO
		SELECT LOCK_KEY, REGION INTO v_key, v_region FROM INT_LOCK_LEASE l
			WHERE LAST_USE < UTC_DATE() - INTERVAL 1 DAY AND TOKEN < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
				AND NOT EXISTS (SELECT 1 FROM INT_LOCK k
					WHERE k.LOCK_KEY = l.LOCK_KEY AND k.REGION = l.REGION AND k.EXPIRED_AFTER >= v_dead)
			ORDER BY LAST_USE LIMIT 1 FOR UPDATE SKIP LOCKED;
		IF v_key IS NOT NULL THEN
			CALL INT_LOCK_FIND(v_key, v_region, FALSE, v_taken);
			IF v_taken THEN
				DELETE FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region AND EXPIRED_AFTER < v_dead;
				DELETE FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region;
			ELSE
				UPDATE INT_LOCK_LEASE SET LAST_USE = UTC_DATE() WHERE LOCK_KEY = v_key AND REGION = v_region;
			END IF;
		END IF;
		SET i = i + 1;
	END WHILE;
	COMMIT;
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_RENEW
//
-- Renew: extend holdings. It never shortens a holding and never brings back one that has
-- ended, which Java's own does.
--
-- items    key, owner, ttl, token
-- answers  s: 1 renewed, -2 nobody holds the key, -3 somebody else does, -4 the row is
--          locked
CREATE PROCEDURE INT_LOCK_RENEW(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_key, v_owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_now, v_live DATETIME(6);
	DECLARE v_ttl, v_token BIGINT;
	DECLARE v_taken BOOLEAN;
	DECLARE v_writes BOOLEAN; -- there is a token to write back, or a new day
	DECLARE v_status, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL INT_LOCK_BEGIN(request, v_region, v_now, v_live);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET q = JSON_EXTRACT(request, CONCAT('$.items[', i, ']'));
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(q, '$.key')), v_owner = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
		SET v_ttl = JSON_EXTRACT(q, '$.ttl'), v_token = JSON_EXTRACT(q, '$.token'), v_status = -2;
		SELECT COUNT(*) > 0 INTO v_writes FROM INT_LOCK_LEASE
			WHERE LOCK_KEY = v_key AND REGION = v_region AND CLIENT_ID = v_owner AND (TOKEN < v_token OR LAST_USE < UTC_DATE());
		IF v_writes THEN
			CALL INT_LOCK_TAKE(v_key, v_region, '', JSON_LENGTH(request, '$.items') = 1, v_taken);
		ELSE
			CALL INT_LOCK_FIND(v_key, v_region, JSON_LENGTH(request, '$.items') = 1, v_taken);
		END IF;
		IF v_taken THEN
			SELECT CASE CLIENT_ID WHEN v_owner THEN 1 WHEN '00000000-0000-0000-0000-000000000000' THEN -2 ELSE -3 END
				INTO v_status FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region AND EXPIRED_AFTER >= v_live;
		ELSE
			SET v_status = -4;
		END IF;
		IF v_status = 1 THEN
			UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, v_live + INTERVAL v_ttl MICROSECOND)
				WHERE LOCK_KEY = v_key AND REGION = v_region;
			IF v_writes THEN
				UPDATE INT_LOCK_LEASE SET TOKEN = GREATEST(TOKEN, v_token), LAST_USE = UTC_DATE()
					WHERE LOCK_KEY = v_key AND REGION = v_region AND CLIENT_ID = v_owner;
			END IF;
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), '{"s": ', v_status, '}'), i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_RELEASE
//
-- Release: end a holding, or hold the key back for a while longer, under an id that nobody
-- has.
--
-- items    key, name, owner, token, keep, uncertain
-- answers  held: the owner held the key until now; s: 1 the same, -2 nobody holds the key, -3
--          somebody else does, -4 a row is locked
CREATE PROCEDURE INT_LOCK_RELEASE(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_key, v_owner CHAR(36) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_now, v_live, v_until DATETIME(6);
	DECLARE v_token, v_keep BIGINT;
	DECLARE v_held, v_taken BOOLEAN;
	DECLARE v_status, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL INT_LOCK_BEGIN(request, v_region, v_now, v_live);
	items: WHILE i < JSON_LENGTH(request, '$.items') DO
		SET q = JSON_EXTRACT(request, CONCAT('$.items[', i, ']')), v_answers = CONCAT(v_answers, IF(i > 0, ',', '')), i = i + 1;
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(q, '$.key')), v_owner = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
		SET v_token = JSON_EXTRACT(q, '$.token'), v_keep = JSON_EXTRACT(q, '$.keep'), v_until = NULL;
		-- A request of the same owner that is under way has this row or comes after us.
		CALL INT_LOCK_TAKE(v_key, v_region, JSON_UNQUOTE(JSON_EXTRACT(q, '$.name')), JSON_LENGTH(request, '$.items') = 1, v_taken);
		IF NOT v_taken THEN
			SET v_answers = CONCAT(v_answers, '{"s": -4}');
			ITERATE items;
		END IF;
		IF JSON_UNQUOTE(JSON_EXTRACT(q, '$.uncertain')) = 'true' THEN
			-- The owner is remembered even if it holds the key. A repeated request may have
			-- taken the key while the first one is still on its way.
			INSERT INTO INT_LOCK_GONE (CLIENT_ID, REGION, GONE_UNTIL)
				VALUES (v_owner, v_region, UTC_TIMESTAMP(6) + INTERVAL 2 MINUTE)
				ON DUPLICATE KEY UPDATE GONE_UNTIL = VALUES(GONE_UNTIL);
		END IF;
		SELECT EXPIRED_AFTER INTO v_until FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region AND CLIENT_ID = v_owner;
		SET v_held = COALESCE(v_until >= v_live, FALSE);
		IF v_held AND v_keep > 0 THEN
			UPDATE INT_LOCK SET CLIENT_ID = '00000000-0000-0000-0000-000000000000', EXPIRED_AFTER = v_live + INTERVAL v_keep MICROSECOND
				WHERE LOCK_KEY = v_key AND REGION = v_region;
			UPDATE INT_LOCK_LEASE SET CLIENT_ID = '00000000-0000-0000-0000-000000000000' WHERE LOCK_KEY = v_key AND REGION = v_region;
		ELSE
			DELETE FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region AND CLIENT_ID = v_owner;
		END IF;
		IF v_held THEN
			UPDATE INT_LOCK_LEASE SET TOKEN = GREATEST(TOKEN, v_token), LAST_USE = UTC_DATE()
				WHERE LOCK_KEY = v_key AND REGION = v_region AND (TOKEN < v_token OR LAST_USE < UTC_DATE());
			SET v_status = 1;
		ELSE
			SET v_status = -2;
			SELECT CASE CLIENT_ID WHEN '00000000-0000-0000-0000-000000000000' THEN -2 ELSE -3 END INTO v_status
				FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region AND EXPIRED_AFTER >= v_live;
		END IF;
		SET v_answers = CONCAT(v_answers, '{"s": ', v_status, ', "held": ', IF(v_held, 'true', 'false'), '}');
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_FORCE
//
-- Force: take the key from its holder, even from Java.
--
-- items    key, token (of the holding that is meant; 0: any, also Java's)
-- answers  held: somebody held the key until now; or s: 3 and what INT_LOCK_HOLDER says, if the
--          holder has another token and nothing was changed
CREATE PROCEDURE INT_LOCK_FORCE(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_key CHAR(36) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_client TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin; -- whatever is there
	DECLARE v_now, v_live, v_until DATETIME(6);
	DECLARE v_meant, v_token BIGINT;
	DECLARE v_held BOOLEAN;
	DECLARE v_found, v_rows, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL INT_LOCK_BEGIN(request, v_region, v_now, v_live);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key'))), v_client = NULL, v_until = NULL,
			v_meant = JSON_EXTRACT(request, CONCAT('$.items[', i, '].token'));
		SET v_found = 0;
		find: LOOP
			SELECT 1 INTO v_found FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region FOR UPDATE SKIP LOCKED;
			IF v_found = 1 THEN
				LEAVE find;
			END IF;
			SELECT COUNT(*) INTO v_rows FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region;
			IF v_rows = 0 THEN
				LEAVE find;
			END IF;
			IF TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= @asynclock_until THEN
				SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'asynclock: the row is locked';
			END IF;
			DO SLEEP(0.001);
		END LOOP;
		CALL INT_LOCK_FIND(v_key, v_region, TRUE, v_found);
		SELECT CLIENT_ID, EXPIRED_AFTER INTO v_client, v_until FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region;
		CALL INT_LOCK_HOLDER(v_key, v_region, v_live, v_answer);
		SET v_held = COALESCE(v_until >= v_live, FALSE), v_token = JSON_EXTRACT(v_answer, '$.token');
		IF v_meant IN (0, v_token) THEN
			DELETE FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region;
			SET v_answer = CONCAT('{"held": ', IF(v_held, 'true', 'false'), '}');
		ELSE
			SET v_held = FALSE;
		END IF;
		IF v_held THEN
			-- The old holder may pass the key on inside its client, with a token for each
			-- microsecond, until it is notified or stops trusting its TTL. The next holder's
			-- token has to be larger than all of these, so that resources refuse them. No TTL is
			-- longer than a day.
			UPDATE INT_LOCK_LEASE SET LAST_USE = UTC_DATE(), TOKEN = GREATEST(TOKEN, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
				+ COALESCE(LEAST(TIMESTAMPDIFF(MICROSECOND, v_live, v_until), 86400000000), 86400000000))
				WHERE LOCK_KEY = v_key AND REGION = v_region AND CLIENT_ID = v_client AND CLOCKED;
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), v_answer), i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_INSPECT
//
-- Inspect: who holds the key.
--
-- items    key
-- answers  what INT_LOCK_HOLDER says
CREATE PROCEDURE INT_LOCK_INSPECT(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_now, v_live DATETIME(6);
	DECLARE i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL INT_LOCK_BEGIN(request, v_region, v_now, v_live);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		CALL INT_LOCK_HOLDER(JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key'))), v_region, v_live, v_answer);
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), v_answer), i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS INT_LOCK_LIST
//
-- List: the next held keys whose names have a prefix, of those that have a name.
--
-- items    after (the LOCK_KEY where the page before ended), prefix, size
-- answers  what INT_LOCK_HOLDER says, with key and name
CREATE PROCEDURE INT_LOCK_LIST(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_region VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin;
	DECLARE v_key CHAR(36) CHARACTER SET ascii COLLATE ascii_bin DEFAULT JSON_UNQUOTE(JSON_EXTRACT(request, '$.items[0].after'));
	DECLARE v_prefix VARBINARY(1536) DEFAULT JSON_UNQUOTE(JSON_EXTRACT(request, '$.items[0].prefix'));
	DECLARE v_left BIGINT DEFAULT JSON_EXTRACT(request, '$.items[0].size');
	DECLARE v_now, v_live DATETIME(6);
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL INT_LOCK_BEGIN(request, v_region, v_now, v_live);
	WHILE v_left > 0 DO
		SET v_key = (SELECT l.LOCK_KEY FROM INT_LOCK_LEASE l JOIN INT_LOCK k ON k.LOCK_KEY = l.LOCK_KEY AND k.REGION = l.REGION
			WHERE l.REGION = v_region AND l.LOCK_KEY > v_key AND LEFT(l.KEY_NAME, LENGTH(v_prefix)) = v_prefix AND k.EXPIRED_AFTER >= v_live
			ORDER BY l.LOCK_KEY LIMIT 1), v_left = v_left - 1;
		IF v_key IS NULL THEN
			SET v_left = 0;
		ELSE
			CALL INT_LOCK_HOLDER(v_key, v_region, v_live, v_answer);
			SET v_answers = CONCAT(v_answers, IF(v_answers = '', '', ','), v_answer);
		END IF;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
