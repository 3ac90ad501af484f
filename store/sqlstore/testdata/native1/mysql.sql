-- Code generated from internal/sqlconn/schema/src by go generate; DO NOT EDIT.
-- SPDX-License-Identifier: Apache-2.0
--
-- The store's own tables and routines, on MySQL 8.0 and MariaDB 10.6 or newer. Migrate runs
-- this file, and replaces the prefix asynclock_ if another one is set. The command line
-- client runs it as it is. It can be run again, also by a later release. Requests that come
-- while a routine is being replaced are tried again.
DELIMITER //

-- A row for each key that is in use or was so in the last day or two. Times are in UTC.
CREATE TABLE IF NOT EXISTS asynclock_lock (
	`key` VARBINARY(1536) NOT NULL PRIMARY KEY,
	owner VARBINARY(128),                 -- a secret of the holder's client; empty: kept back; null: nobody
	held_until DATETIME(6) NOT NULL,
	holder VARBINARY(512) NOT NULL DEFAULT '', -- for people
	token BIGINT NOT NULL,                -- the last one known to be used; never goes back
	clocked BOOLEAN NOT NULL DEFAULT FALSE,    -- it came from the clock
	last_use DATE NOT NULL,
	KEY (last_use)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- The queues. A transaction locks the key's row before it changes the key's queue.
CREATE TABLE IF NOT EXISTS asynclock_waiter (
	`key` VARBINARY(1536) NOT NULL,
	ticket BIGINT NOT NULL AUTO_INCREMENT,
	owner VARBINARY(128) NOT NULL,
	alive_until DATETIME(6) NOT NULL, -- dead, if not heard of until then
	since DATETIME(6) NOT NULL,
	grant_ttl BIGINT NOT NULL,        -- microseconds
	holder VARBINARY(512) NOT NULL,
	PRIMARY KEY (`key`, ticket),
	UNIQUE KEY (owner, `key`),
	KEY (ticket)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- Owners that were withdrawn while one of their requests had no answer yet.
CREATE TABLE IF NOT EXISTS asynclock_gone (
	owner VARBINARY(128) NOT NULL PRIMARY KEY,
	gone_until DATETIME(6) NOT NULL,
	KEY (gone_until)
) ENGINE = InnoDB
//
-- The largest token of all deleted rows of asynclock_lock. It makes tokens rise, although no
-- key's row is kept for ever.
CREATE TABLE IF NOT EXISTS asynclock_floor (
	one INT PRIMARY KEY,
	token BIGINT NOT NULL
) ENGINE = InnoDB
//
INSERT INTO asynclock_floor VALUES (1, 0) ON DUPLICATE KEY UPDATE token = token
//

-- The largest token of each key that has guarded a transaction. These rows must never be
-- deleted: without its row, a holder that overslept could write.
CREATE TABLE IF NOT EXISTS asynclock_fence (
	`key` VARBINARY(2048) NOT NULL PRIMARY KEY,
	token BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//

-- The routines take {"schema", "items"} and answer {"clock", "items"}, with an answer for
-- each item, in the same order, as one transaction. Durations are in microseconds. "clock" is
-- the server's, since 1970. No other clock matters here. In a procedure each statement has a
-- UTC_TIMESTAMP of its own.
--
-- A request of one item waits for its rows. A request of several items waits for none,
-- because it would delay others that need its other rows, and their renewals. It answers s:
-- -4 for an item whose rows another transaction has locked or is about to make. The client
-- then sends this item alone.
--
-- After its COMMIT a routine must not fail because another routine is missing, which a
-- migration may cause. The failed request would be taken for one that has done nothing.
-- Answers are bytes, which no connection's character set changes.

DROP PROCEDURE IF EXISTS asynclock_begin
//
-- Begin the transaction of a request.
CREATE PROCEDURE asynclock_begin(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	-- A request must not go on for long after its client has given it up. The application's
	-- own setting is restored when the routine ends.
	SET @asynclock_patience = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED);
	SET @@innodb_lock_wait_timeout = 1;
	IF JSON_UNQUOTE(JSON_EXTRACT(request, '$.schema')) <> 'native 1' THEN
		SIGNAL SQLSTATE 'AL002' SET MESSAGE_TEXT = 'asynclock: these routines are native 1, the client wants others';
	END IF;
	-- Under autocommit = 0 the connection's last user may have left a transaction open, in
	-- which the level can't be set. BEGIN would end that transaction, too.
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	START TRANSACTION;
END
//
DROP PROCEDURE IF EXISTS asynclock_lowest
//
-- The token that new keys begin with. If tables were copied without their contents, its row
-- is missing, and no new key can be used.
CREATE PROCEDURE asynclock_lowest(OUT v_token BIGINT)
BEGIN
	SET v_token = (SELECT token FROM asynclock_floor);
	IF v_token IS NULL THEN
		SIGNAL SQLSTATE 'AL003' SET MESSAGE_TEXT = 'asynclock: asynclock_floor is empty';
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_take
//
-- Lock the key's row, which is made if there is none. Without v_wait this is done only if no
-- other transaction has the row locked or is about to make it. The latter shows only by
-- waiting for the row: not at all in MariaDB, for a second in MySQL. Where the server ends a
-- whole transaction that waits too long, nothing is made without v_wait.
CREATE PROCEDURE asynclock_take(IN v_key VARBINARY(1536), IN v_wait BOOLEAN, OUT v_taken BOOLEAN)
BEGIN
	DECLARE v_rows INT DEFAULT 0;
	DECLARE v_token BIGINT;
	SET v_taken = FALSE;
	IF v_wait THEN
		SELECT TRUE INTO v_taken FROM asynclock_lock WHERE `key` = v_key FOR UPDATE;
	ELSE
		SELECT TRUE INTO v_taken FROM asynclock_lock WHERE `key` = v_key FOR UPDATE SKIP LOCKED;
		SELECT COUNT(*) INTO v_rows FROM asynclock_lock WHERE `key` = v_key;
	END IF;
	IF NOT v_taken AND v_rows = 0 AND (v_wait OR NOT @@innodb_rollback_on_timeout) THEN
		BEGIN
			DECLARE EXIT HANDLER FOR 1205 BEGIN
				IF v_wait THEN
					RESIGNAL;
				END IF;
				SET @@innodb_lock_wait_timeout = 1;
			END;
			SET @@innodb_lock_wait_timeout = IF(v_wait OR VERSION() NOT LIKE '%MariaDB%', 1, 0);
			INSERT INTO asynclock_lock (`key`, held_until, token, last_use) VALUES (v_key, '1970-01-01', 0, UTC_DATE())
				ON DUPLICATE KEY UPDATE last_use = last_use;
			SET @@innodb_lock_wait_timeout = 1;
			-- If a row of this key was deleted, the floor is read after that.
			CALL asynclock_lowest(v_token);
			UPDATE asynclock_lock SET token = GREATEST(token, v_token) WHERE `key` = v_key;
			SET v_taken = TRUE;
		END;
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_grant
//
-- Make an owner the holder. Tokens are made only here.
CREATE PROCEDURE asynclock_grant(
	IN v_key VARBINARY(1536), IN v_owner VARBINARY(128), IN v_ttl BIGINT, IN v_holder VARBINARY(512))
BEGIN
	DECLARE v_now DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
	DECLARE v_clock BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v_now);
	-- The order matters: clocked reads the old token.
	UPDATE asynclock_lock SET owner = v_owner, held_until = v_now + INTERVAL v_ttl MICROSECOND, holder = v_holder,
		clocked = v_clock > token, token = GREATEST(token + 1, v_clock), last_use = UTC_DATE()
		WHERE `key` = v_key;
END
//
DROP PROCEDURE IF EXISTS asynclock_pass
//
-- Give a free key to the first in its queue. The requesting owner gets it in the answer and
-- for its whole TTL. Any other owner has to poll, and gets the key for its grant TTL. If that
-- owner is gone, the key is stuck no longer than that.
CREATE PROCEDURE asynclock_pass(IN v_key VARBINARY(1536), IN v_asking VARBINARY(128), IN v_ttl BIGINT)
BEGIN
	DECLARE v_ticket, v_grant BIGINT;
	DECLARE v_owner VARBINARY(128);
	DECLARE v_holder VARBINARY(512);
	DELETE FROM asynclock_waiter WHERE `key` = v_key AND alive_until <= UTC_TIMESTAMP(6);
	SET v_ticket = (SELECT MIN(ticket) FROM asynclock_waiter WHERE `key` = v_key);
	IF v_ticket IS NOT NULL THEN
		SELECT owner, grant_ttl, holder INTO v_owner, v_grant, v_holder
			FROM asynclock_waiter WHERE `key` = v_key AND ticket = v_ticket;
		DELETE FROM asynclock_waiter WHERE `key` = v_key AND ticket = v_ticket;
		CALL asynclock_grant(v_key, v_owner, IF(v_owner = v_asking, v_ttl, v_grant), v_holder);
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_acquire_one
//
-- Acquire: take the key, or join its queue, or do neither. A repetition for the same owner is
-- the waiter's heartbeat. By it the waiter also learns that it was granted the key.
--
-- items    key, owner, ttl, grant, alive, wait, limit, ticket, holder
-- answers  s: 1 granted (token, clocked, waiters), 2 waiting (left, rank, ticket, mark),
--          3 held (left, holder, token, waiters), 4 full, 5 gone, -4 the row is locked
CREATE PROCEDURE asynclock_acquire_one(
	IN q LONGTEXT CHARACTER SET utf8mb4, IN v_patient BOOLEAN, OUT answer LONGTEXT CHARACTER SET utf8mb4)
this: BEGIN
	DECLARE v_key VARBINARY(1536) DEFAULT JSON_UNQUOTE(JSON_EXTRACT(q, '$.key'));
	DECLARE v_asking, v_owner VARBINARY(128);
	DECLARE v_holder, v_other VARBINARY(512);
	DECLARE v_ttl BIGINT DEFAULT JSON_EXTRACT(q, '$.ttl');
	DECLARE v_grant BIGINT DEFAULT JSON_EXTRACT(q, '$.grant');
	DECLARE v_alive BIGINT DEFAULT JSON_EXTRACT(q, '$.alive');
	DECLARE v_limit BIGINT DEFAULT JSON_EXTRACT(q, '$.limit');
	DECLARE v_wait BOOLEAN DEFAULT JSON_UNQUOTE(JSON_EXTRACT(q, '$.wait')) = 'true';
	DECLARE v_ticket, v_token, v_waiters BIGINT;
	DECLARE v_now, v_until DATETIME(6);
	DECLARE v_clocked, v_taken BOOLEAN;

	SET v_asking = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
	SET v_holder = JSON_UNQUOTE(JSON_EXTRACT(q, '$.holder'));
	IF NOT v_wait THEN -- a poll while another has the key locks no row
		SELECT held_until, holder, token INTO v_until, v_other, v_token FROM asynclock_lock
			WHERE `key` = v_key AND held_until > UTC_TIMESTAMP(6) AND NOT owner <=> v_asking
				AND NOT EXISTS (SELECT 1 FROM asynclock_gone g WHERE g.owner = v_asking);
		SET v_now = UTC_TIMESTAMP(6);
		IF v_until > v_now THEN
			SET answer = CONCAT('{"s": 3, "left": ', TIMESTAMPDIFF(MICROSECOND, v_now, v_until),
				', "holder": ', JSON_QUOTE(CONVERT(v_other USING utf8mb4)), ', "token": ', v_token, ', "waiters": ',
				(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now), '}');
			LEAVE this;
		END IF;
	END IF;
	CALL asynclock_take(v_key, v_patient, v_taken);
	IF NOT v_taken THEN
		SET answer = '{"s": -4}';
		LEAVE this;
	END IF;
	SET v_now = UTC_TIMESTAMP(6); -- for taking the row may have taken a while
	SELECT owner, held_until, holder, token INTO v_owner, v_until, v_other, v_token FROM asynclock_lock WHERE `key` = v_key;
	SET v_waiters = (SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now);

	IF v_owner = v_asking AND v_until > v_now THEN
		UPDATE asynclock_lock SET held_until = GREATEST(held_until, v_now + INTERVAL v_ttl MICROSECOND) WHERE `key` = v_key;
	ELSEIF EXISTS (SELECT 1 FROM asynclock_gone WHERE owner = v_asking AND gone_until > v_now) THEN
		SET answer = '{"s": 5}';
		LEAVE this;
	ELSE
		SET v_ticket = (SELECT MIN(ticket) FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking AND alive_until > v_now);
		IF v_ticket IS NOT NULL THEN
			UPDATE asynclock_waiter SET alive_until = v_now + INTERVAL v_alive MICROSECOND, grant_ttl = v_grant, holder = v_holder
				WHERE `key` = v_key AND ticket = v_ticket;
		ELSEIF v_until <= v_now AND v_waiters = 0 THEN
			CALL asynclock_grant(v_key, v_asking, v_ttl, v_holder);
		ELSEIF NOT v_wait THEN
			SET answer = CONCAT('{"s": 3, "left": ', GREATEST(TIMESTAMPDIFF(MICROSECOND, v_now, v_until), 0),
				', "holder": ', JSON_QUOTE(CONVERT(v_other USING utf8mb4)), ', "token": ', v_token, ', "waiters": ', v_waiters, '}');
			LEAVE this;
		ELSE
			SET v_ticket = JSON_EXTRACT(q, '$.ticket'); -- the place of one that was dropped, and comes back
			IF v_ticket = 0 AND v_limit BETWEEN 1 AND v_waiters THEN
				SET answer = '{"s": 4}';
				LEAVE this;
			END IF;
			DELETE FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking;
			-- Dead waiters are deleted, too. There are many of them if the key is held for
			-- long and clients come and go.
			DELETE FROM asynclock_waiter WHERE `key` = v_key AND alive_until <= v_now;
			INSERT INTO asynclock_waiter (`key`, ticket, owner, alive_until, since, grant_ttl, holder)
				VALUES (v_key, NULLIF(v_ticket, 0), v_asking, v_now + INTERVAL v_alive MICROSECOND, v_now, v_grant, v_holder);
			SET v_ticket = (SELECT ticket FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking);
		END IF;
		IF v_until <= v_now AND v_ticket IS NOT NULL THEN
			CALL asynclock_pass(v_key, v_asking, v_ttl);
		END IF;
	END IF;

	SELECT owner, held_until, token, clocked INTO v_owner, v_until, v_token, v_clocked FROM asynclock_lock WHERE `key` = v_key;
	IF v_owner = v_asking AND v_until > v_now THEN
		SET answer = CONCAT('{"s": 1, "token": ', v_token, ', "clocked": ', IF(v_clocked, 'true', 'false'), ', "waiters": ',
			(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now), '}');
	ELSE
		SET answer = CONCAT('{"s": 2, "left": ', GREATEST(TIMESTAMPDIFF(MICROSECOND, v_now, v_until), 0),
			', "ticket": ', v_ticket, ', "mark": ', v_token, ', "rank": ',
			(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND ticket < v_ticket AND alive_until > v_now), '}');
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_acquire
//
CREATE PROCEDURE asynclock_acquire(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		CALL asynclock_acquire_one(JSON_EXTRACT(request, CONCAT('$.items[', i, ']')), JSON_LENGTH(request, '$.items') = 1, v_answer);
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), v_answer), i = i + 1;
	END WHILE;
	COMMIT;
	-- So rows are deleted eight times as fast as they are made, even if each key is used only
	-- once.
	IF RAND() < 0.02 * JSON_LENGTH(request, '$.items') THEN
		BEGIN
			DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK; -- others will sweep
			CALL asynclock_sweep(GREATEST(400, 8 * JSON_LENGTH(request, '$.items')));
		END;
	END IF;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_sweep
//
-- Sweep: forget keys that nobody has used for a day, except their tokens, and owners that are
-- not heard of any more. The number of each is limited. It waits for no row.
CREATE PROCEDURE asynclock_sweep(IN v_limit INT)
BEGIN
	DECLARE v_key VARBINARY(1536) DEFAULT '';
	DECLARE v_owner VARBINARY(128) DEFAULT '';
	DECLARE v_token BIGINT;
	DECLARE v_floor, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_key = NULL, v_owner = NULL;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	START TRANSACTION;
	WHILE i < v_limit AND v_owner IS NOT NULL DO
		SELECT owner INTO v_owner FROM asynclock_gone WHERE gone_until < UTC_TIMESTAMP(6)
			ORDER BY gone_until LIMIT 1 FOR UPDATE SKIP LOCKED;
		DELETE FROM asynclock_gone WHERE owner = v_owner;
		SET i = i + 1;
	END WHILE;
	SET i = 0, v_key = '';
	SELECT one INTO v_floor FROM asynclock_floor FOR UPDATE SKIP LOCKED; -- without it another one sweeps
	WHILE v_floor = 1 AND i < v_limit AND v_key IS NOT NULL DO
		SELECT `key`, token INTO v_key, v_token FROM asynclock_lock l
			WHERE last_use < UTC_DATE() - INTERVAL 1 DAY AND held_until < UTC_TIMESTAMP(6)
				AND NOT EXISTS (SELECT 1 FROM asynclock_waiter w WHERE w.`key` = l.`key` AND w.alive_until > UTC_TIMESTAMP(6))
			ORDER BY last_use LIMIT 1 FOR UPDATE SKIP LOCKED;
		IF v_key IS NOT NULL THEN
			UPDATE asynclock_floor SET token = GREATEST(token, v_token) WHERE one = 1; -- which sql_safe_updates wants
			DELETE FROM asynclock_waiter WHERE `key` = v_key; -- dead ones
			DELETE FROM asynclock_lock WHERE `key` = v_key;
		END IF;
		SET i = i + 1;
	END WHILE;
	COMMIT;
END
//
DROP PROCEDURE IF EXISTS asynclock_renew
//
-- Renew: extend holdings. It never shortens a holding and never brings back one that has
-- ended.
--
-- items    key, owner, ttl, token
-- answers  s: 1 renewed (waiters), -2 nobody holds the key, -3 somebody else does, -4 the
--          row is locked
CREATE PROCEDURE asynclock_renew(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_asking, v_owner VARBINARY(128);
	DECLARE v_now, v_until DATETIME(6);
	DECLARE v_ttl BIGINT;
	DECLARE v_status, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET q = JSON_EXTRACT(request, CONCAT('$.items[', i, ']'));
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(q, '$.key')), v_asking = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
		SET v_ttl = JSON_EXTRACT(q, '$.ttl'), v_owner = NULL, v_until = NULL, v_status = -2;
		IF JSON_LENGTH(request, '$.items') = 1 THEN
			SELECT owner, held_until INTO v_owner, v_until FROM asynclock_lock WHERE `key` = v_key FOR UPDATE;
		ELSE
			SELECT owner, held_until INTO v_owner, v_until FROM asynclock_lock WHERE `key` = v_key FOR UPDATE SKIP LOCKED;
		END IF;
		SET v_now = UTC_TIMESTAMP(6); -- for finding the row may have taken a while
		IF v_owner = v_asking AND v_until > v_now THEN
			SET v_status = 1;
			UPDATE asynclock_lock SET held_until = GREATEST(held_until, v_now + INTERVAL v_ttl MICROSECOND), last_use = UTC_DATE(),
				token = GREATEST(token, CAST(JSON_EXTRACT(q, '$.token') AS SIGNED)) WHERE `key` = v_key;
		ELSE
			SELECT CASE owner WHEN v_asking THEN -4 WHEN '' THEN -2 ELSE -3 END INTO v_status
				FROM asynclock_lock WHERE `key` = v_key AND held_until > v_now;
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), '{"s": ', v_status, ', "waiters": ',
			(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now), '}');
		SET i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_release
//
-- Release: end an owner's holding or its place in the queue. The key goes to the next waiter
-- in the same transaction, or is held back for a while longer. Before that, requeue, an item
-- of acquire, joins the queue.
--
-- items    key, owner, token, keep, uncertain, requeue
-- answers  held: the owner held the key until now; requeue: the answer to that; s: 1 the same,
--          -2 nobody holds the key, -3 somebody else does, -4 the row is locked
CREATE PROCEDURE asynclock_release(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_requeued, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_asking, v_owner VARBINARY(128);
	DECLARE v_keep BIGINT;
	DECLARE v_held, v_taken BOOLEAN;
	DECLARE v_now, v_until DATETIME(6);
	DECLARE v_status, i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	items: WHILE i < JSON_LENGTH(request, '$.items') DO
		SET q = JSON_EXTRACT(request, CONCAT('$.items[', i, ']')), v_answers = CONCAT(v_answers, IF(i > 0, ',', '')), i = i + 1;
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(q, '$.key')), v_asking = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
		SET v_keep = JSON_EXTRACT(q, '$.keep');
		CALL asynclock_take(v_key, JSON_LENGTH(request, '$.items') = 1, v_taken);
		IF NOT v_taken THEN
			SET v_answers = CONCAT(v_answers, '{"s": -4}');
			ITERATE items;
		END IF;
		SET v_now = UTC_TIMESTAMP(6);
		SELECT owner, held_until INTO v_owner, v_until FROM asynclock_lock WHERE `key` = v_key;
		IF JSON_UNQUOTE(JSON_EXTRACT(q, '$.uncertain')) = 'true' THEN
			-- The owner is remembered even if it holds the key. A repeated request may have
			-- taken the key while the first one is still on its way.
			INSERT INTO asynclock_gone VALUES (v_asking, v_now + INTERVAL 2 MINUTE)
				ON DUPLICATE KEY UPDATE gone_until = VALUES(gone_until);
		END IF;
		SET v_status = CASE WHEN COALESCE(v_owner, '') = '' OR v_until <= v_now THEN -2 WHEN v_owner = v_asking THEN 1 ELSE -3 END;
		SET v_held = v_status = 1;
		IF v_held THEN
			UPDATE asynclock_lock SET owner = IF(v_keep > 0, '', NULL), held_until = v_now + INTERVAL v_keep MICROSECOND,
				token = GREATEST(token, CAST(JSON_EXTRACT(q, '$.token') AS SIGNED)) WHERE `key` = v_key;
		ELSE
			DELETE FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking;
		END IF;
		SET v_requeued = 'null';
		IF JSON_EXTRACT(q, '$.requeue') IS NOT NULL THEN
			CALL asynclock_acquire_one(JSON_EXTRACT(q, '$.requeue'), TRUE, v_requeued); -- the row is ours already
		END IF;
		IF v_held AND EXISTS (SELECT 1 FROM asynclock_lock WHERE `key` = v_key AND held_until <= v_now) THEN
			CALL asynclock_pass(v_key, NULL, 0);
		END IF;
		SET v_answers = CONCAT(v_answers, '{"s": ', v_status, ', "held": ', IF(v_held, 'true', 'false'), ', "requeue": ', v_requeued, '}');
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_force
//
-- Force: take the key from its holder, and pass it on.
--
-- items    key, token (of the holding that is meant; 0: any)
-- answers  held: somebody held the key until now; or s: 3 and what asynclock_info says, if the
--          holder has another token and nothing was changed
CREATE PROCEDURE asynclock_force(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_meant, v_token BIGINT;
	DECLARE v_held, v_taken BOOLEAN;
	DECLARE v_now, v_until DATETIME(6);
	DECLARE i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key')));
		CALL asynclock_take(v_key, TRUE, v_taken);
		SET v_now = UTC_TIMESTAMP(6), v_meant = JSON_EXTRACT(request, CONCAT('$.items[', i, '].token'));
		SELECT held_until, token INTO v_until, v_token FROM asynclock_lock WHERE `key` = v_key;
		SET v_held = v_until > v_now, v_answer = CONCAT('{"held": ', IF(v_held, 'true', 'false'), '}');
		IF v_held AND v_meant NOT IN (0, v_token) THEN
			CALL asynclock_info(v_key, v_answer);
			SET v_answer = JSON_SET(v_answer, '$.s', 3);
		ELSEIF v_held THEN
			-- The old holder may pass the key on inside its client, with a token for each
			-- microsecond, until it is notified or stops trusting its TTL. The next holder's
			-- token has to be larger than all of these, so that resources refuse them.
			UPDATE asynclock_lock SET
				token = IF(clocked AND owner <> '', GREATEST(token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v_until)), token),
				owner = NULL, held_until = v_now WHERE `key` = v_key;
			CALL asynclock_pass(v_key, NULL, 0);
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), v_answer);
		SET i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_info
//
-- The state of a key: held, left, holder, token, waiters.
CREATE PROCEDURE asynclock_info(IN v_key VARBINARY(1536), OUT answer LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_now DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
	DECLARE CONTINUE HANDLER FOR NOT FOUND SET answer = '{"held": false}';
	SELECT CONCAT('{"key": ', JSON_QUOTE(CONVERT(`key` USING utf8mb4)), ', "name": ', JSON_QUOTE(CONVERT(`key` USING utf8mb4)),
		', "held": ', IF(held_until > v_now, 'true', 'false'),
		', "left": ', GREATEST(TIMESTAMPDIFF(MICROSECOND, v_now, held_until), 0),
		', "holder": ', JSON_QUOTE(CONVERT(holder USING utf8mb4)), ', "token": ', token, ', "waiters": ',
		(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now), '}')
		INTO answer FROM asynclock_lock WHERE `key` = v_key;
END
//
DROP PROCEDURE IF EXISTS asynclock_inspect
//
-- Inspect: who holds the key, and the first in its queue. A client calls it without a key to
-- check that all routines exist.
--
-- items    key, size (of the queue to show)
-- answers  what asynclock_info says, and queue, of {holder, age}
CREATE PROCEDURE asynclock_inspect(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers, v_queue LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_token, v_last, v_left BIGINT DEFAULT 0;
	DECLARE i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key')));
		CALL asynclock_info(v_key, v_answer);
		SET v_queue = '', v_last = 0, v_left = JSON_EXTRACT(request, CONCAT('$.items[', i, '].size'));
		WHILE v_left > 0 DO
			SET v_last = (SELECT MIN(ticket) FROM asynclock_waiter
				WHERE `key` = v_key AND ticket > v_last AND alive_until > UTC_TIMESTAMP(6)), v_left = v_left - 1;
			IF v_last IS NULL THEN
				SET v_left = 0;
			ELSE
				SELECT CONCAT(v_queue, IF(v_queue = '', '', ','), '{"holder": ', JSON_QUOTE(CONVERT(holder USING utf8mb4)),
					', "age": ', TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), '}') INTO v_queue
					FROM asynclock_waiter WHERE `key` = v_key AND ticket = v_last;
			END IF;
		END WHILE;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), LEFT(v_answer, CHAR_LENGTH(v_answer) - 1), ', "queue": [', v_queue, ']}');
		SET i = i + 1;
	END WHILE;
	CALL asynclock_lowest(v_token);
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_list
//
-- List: the next keys with a prefix that are held or waited for.
--
-- items    after (the key where the page before ended), prefix, size
-- answers  what asynclock_info says
CREATE PROCEDURE asynclock_list(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536) DEFAULT JSON_UNQUOTE(JSON_EXTRACT(request, '$.items[0].after'));
	DECLARE v_prefix VARBINARY(1536) DEFAULT JSON_UNQUOTE(JSON_EXTRACT(request, '$.items[0].prefix'));
	DECLARE v_left BIGINT DEFAULT JSON_EXTRACT(request, '$.items[0].size');
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE v_left > 0 DO
		SET v_key = (SELECT k.`key` FROM asynclock_lock k
			WHERE k.`key` > v_key AND k.`key` >= v_prefix AND LEFT(k.`key`, LENGTH(v_prefix)) = v_prefix
				AND (k.held_until > UTC_TIMESTAMP(6) OR EXISTS (SELECT 1 FROM asynclock_waiter w
					WHERE w.`key` = k.`key` AND w.alive_until > UTC_TIMESTAMP(6)))
			ORDER BY k.`key` LIMIT 1), v_left = v_left - 1;
		IF v_key IS NULL THEN
			SET v_left = 0;
		ELSE
			CALL asynclock_info(v_key, v_answer);
			SET v_answers = CONCAT(v_answers, IF(v_answers = '', '', ','), v_answer);
		END IF;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclock_patience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclock_patience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
