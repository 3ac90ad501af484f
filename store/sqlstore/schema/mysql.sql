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
	owner VARBINARY(128),                 -- a secret of the holder's client; empty: kept back; null: nobody; 'in share'
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
	mode INT NOT NULL,                -- 0: it wants all of the key, otherwise as in asynclock_share
	weight INT NOT NULL,
	extra INT NOT NULL,               -- how many permits more it takes if nobody waits
	permits INT NOT NULL,
	PRIMARY KEY (`key`, ticket),
	UNIQUE KEY (owner, `key`),
	KEY (ticket)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- The owners that share a key, its members. The row of such a key in the table of locks has
-- the owner 'in share', which is no owner's id, and the longest held_until of its members. A
-- transaction locks that row before it changes them.
CREATE TABLE IF NOT EXISTS asynclock_share (
	`key` VARBINARY(1536) NOT NULL,
	owner VARBINARY(192) NOT NULL,    -- a secret; 'back' and more: nobody's, what was given up is kept back
	held_until DATETIME(6) NOT NULL,
	mode INT NOT NULL,                -- 1: reader, 2: permits; all members of a key have the same
	weight INT NOT NULL,              -- how many permits
	permits INT NOT NULL,             -- of how many, as this owner believes
	token BIGINT NOT NULL,            -- the grant's number, or the last one known to be used
	fence BIGINT NOT NULL,            -- the token that readers have in common; 0: permits
	holder VARBINARY(512) NOT NULL,
	PRIMARY KEY (`key`, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- How many permits a key has, whatever holders and requests say. A transaction locks the key's row
-- in the table of locks before it changes this. A row stays until the limit is forgotten.
CREATE TABLE IF NOT EXISTS asynclock_permits (
	`key` VARBINARY(1536) NOT NULL PRIMARY KEY,
	permits INT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- The notes that holders have left beside their keys. They outlive the rows of the locks.
CREATE TABLE IF NOT EXISTS asynclock_note (
	`key` VARBINARY(1536) NOT NULL PRIMARY KEY,
	token BIGINT NOT NULL,            -- of the lease that wrote it
	seq BIGINT NOT NULL,              -- its number among the notes of that lease
	data VARBINARY(2048) NOT NULL,    -- in base64
	note_until DATETIME(6) NOT NULL,
	KEY (note_until)
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
-- A request of one item waits for its rows, for some milliseconds. Then nothing is done, and the
-- client sends it again later: its connection is the application's. A request of several items
-- waits for none, because it would delay others that need its other rows, and their renewals. It
-- answers s: -4 for an item whose rows another transaction has locked. The client then sends this
-- item alone. If another transaction is about to make a row that it needs, nothing is done, and
-- the client sends each item alone.
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
	-- own setting is restored when the routine ends, or by the client. The variable that keeps it has no prefix of
	-- the tables.
	SET @asynclockPatience = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED);
	SET @@innodb_lock_wait_timeout = 1;
	-- That setting has seconds only. So a row that is locked is asked for again each millisecond, up
	-- to this moment.
	SET @asynclock_until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
		+ COALESCE(JSON_EXTRACT(request, '$.items[0].in_line'), 20000);
	IF JSON_UNQUOTE(JSON_EXTRACT(request, '$.schema')) <> 'native 2' THEN
		SIGNAL SQLSTATE 'AL002' SET MESSAGE_TEXT = 'asynclock: these routines are native 2, the client wants others';
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
-- other transaction has the row locked.
CREATE PROCEDURE asynclock_take(IN v_key VARBINARY(1536), IN v_wait BOOLEAN, OUT v_taken BOOLEAN)
BEGIN
	DECLARE v_rows INT DEFAULT 0;
	DECLARE v_token BIGINT;
	SET v_taken = FALSE;
	find: LOOP
		SELECT TRUE INTO v_taken FROM asynclock_lock WHERE `key` = v_key FOR UPDATE SKIP LOCKED;
		IF v_taken THEN
			LEAVE find;
		END IF;
		SELECT COUNT(*) INTO v_rows FROM asynclock_lock WHERE `key` = v_key;
		IF v_rows = 0 OR NOT v_wait THEN
			LEAVE find;
		END IF;
		IF TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= @asynclock_until THEN
			SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'asynclock: the row is locked';
		END IF;
		DO SLEEP(0.001);
	END LOOP;
	IF NOT v_taken AND v_rows = 0 THEN
		-- A row that another transaction is about to make shows only by waiting for it: not at
		-- all in MariaDB, for a second in MySQL.
		SET @@innodb_lock_wait_timeout = VERSION() NOT LIKE '%MariaDB%';
		INSERT INTO asynclock_lock (`key`, held_until, token, last_use) VALUES (v_key, '1970-01-01', 0, UTC_DATE())
			ON DUPLICATE KEY UPDATE last_use = last_use;
		SET @@innodb_lock_wait_timeout = 1;
		-- If a row of this key was deleted, the floor is read after that.
		CALL asynclock_lowest(v_token);
		UPDATE asynclock_lock SET token = GREATEST(token, v_token) WHERE `key` = v_key;
		SET v_taken = TRUE;
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_grant
//
-- Make an owner the holder. Tokens are made only here and in asynclock_join.
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
DROP PROCEDURE IF EXISTS asynclock_in_force
//
-- How many permits a key has for who counts on so many, or for its members alone if that is
-- null: what is stored, or otherwise the smallest number that one of them counts on.
CREATE PROCEDURE asynclock_in_force(IN v_key VARBINARY(1536), IN v_permits INT, OUT v_limit INT)
BEGIN
	SET v_limit = (SELECT permits FROM asynclock_permits WHERE `key` = v_key);
	IF v_limit IS NULL THEN
		SET v_limit = (SELECT LEAST(COALESCE(MIN(permits), v_permits), COALESCE(v_permits, MIN(permits)))
			FROM asynclock_share WHERE `key` = v_key AND mode = 2 AND held_until > UTC_TIMESTAMP(6));
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_told
//
-- The limit in force, for the answer to a request for permits.
CREATE PROCEDURE asynclock_told(IN v_key VARBINARY(1536), IN v_permits INT, INOUT answer LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_limit INT;
	CALL asynclock_in_force(v_key, v_permits, v_limit);
	SET answer = CONCAT(LEFT(answer, CHAR_LENGTH(answer) - 1), ', "limit": ', COALESCE(v_limit, 0), '}');
END
//
DROP PROCEDURE IF EXISTS asynclock_too_much
//
-- Whether so many permits are more than the key has by what is stored.
CREATE PROCEDURE asynclock_too_much(IN v_key VARBINARY(1536), IN v_weight INT, OUT v_large BOOLEAN)
BEGIN
	SET v_large = EXISTS (SELECT 1 FROM asynclock_permits WHERE `key` = v_key AND permits < v_weight);
END
//
DROP PROCEDURE IF EXISTS asynclock_refuse
//
-- Refuse a request for too much, which leaves the queue. The members of the key have been gathered.
CREATE PROCEDURE asynclock_refuse(IN v_key VARBINARY(1536), IN v_asking VARBINARY(128), OUT answer LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_shared, v_free BOOLEAN;
	DELETE FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking;
	-- Those behind it may have waited only for it.
	SELECT owner <=> 'in share', held_until <= UTC_TIMESTAMP(6) INTO v_shared, v_free FROM asynclock_lock WHERE `key` = v_key;
	IF v_shared OR v_free THEN
		CALL asynclock_pass(v_key, NULL, 0, v_shared);
	END IF;
	SET answer = CONCAT('{"s": 6, "limit": ', (SELECT permits FROM asynclock_permits WHERE `key` = v_key), '}');
END
//
DROP PROCEDURE IF EXISTS asynclock_gather
//
-- Drop the members of a key whose time is over. Without members the key is free.
CREATE PROCEDURE asynclock_gather(IN v_key VARBINARY(1536), IN v_now DATETIME(6))
BEGIN
	DECLARE v_until DATETIME(6);
	DELETE FROM asynclock_share WHERE `key` = v_key AND held_until <= v_now;
	SET v_until = (SELECT MAX(held_until) FROM asynclock_share WHERE `key` = v_key);
	UPDATE asynclock_lock SET owner = IF(v_until IS NULL, NULL, owner), held_until = COALESCE(v_until, '1970-01-01') WHERE `key` = v_key;
END
//
DROP PROCEDURE IF EXISTS asynclock_fits
//
-- Whether a request, of mode 0 for all of the key, fits beside the members of a key, which have
-- been gathered.
CREATE PROCEDURE asynclock_fits(IN v_key VARBINARY(1536), IN v_mode INT, IN v_weight INT, IN v_permits INT, OUT v_fits BOOLEAN)
BEGIN
	SET v_fits = v_mode = (SELECT mode FROM asynclock_share WHERE `key` = v_key LIMIT 1);
	IF v_fits AND v_mode = 2 THEN
		-- Every holder may rely on its own limit for as long as it holds, unless another one is stored.
		SET v_fits = (SELECT SUM(weight) + v_weight <= COALESCE((SELECT p.permits FROM asynclock_permits p WHERE p.`key` = v_key), LEAST(MIN(permits), v_permits))
			FROM asynclock_share WHERE `key` = v_key);
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_join
//
-- Make an owner one of those who share the key. The key is free or it fits beside the members,
-- which have been gathered.
CREATE PROCEDURE asynclock_join(
	IN v_key VARBINARY(1536), IN v_owner VARBINARY(128), IN v_ttl BIGINT, IN v_holder VARBINARY(512),
	IN v_mode INT, IN v_weight INT, IN v_extra INT, IN v_permits INT)
BEGIN
	DECLARE v_now DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
	DECLARE v_until DATETIME(6) DEFAULT v_now + INTERVAL v_ttl MICROSECOND;
	DECLARE v_token, v_fence BIGINT;
	DECLARE v_shared BOOLEAN;
	SELECT owner <=> 'in share', GREATEST(token + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v_now)) INTO v_shared, v_token
		FROM asynclock_lock WHERE `key` = v_key;
	IF v_shared THEN
		-- Readers that hold the key together have one token. With different ones they would
		-- fence each other out at a resource.
		SET v_fence = (SELECT fence FROM asynclock_share WHERE `key` = v_key LIMIT 1);
	ELSE
		SET v_fence = IF(v_mode = 1, v_token, 0);
	END IF;
	-- Nobody gets more permits than it needs while others wait.
	IF v_extra > 0 AND NOT EXISTS (SELECT 1 FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now) THEN
		SET v_weight = (SELECT v_weight + LEAST(v_extra, COALESCE((SELECT p.permits FROM asynclock_permits p WHERE p.`key` = v_key),
			LEAST(COALESCE(MIN(permits), v_permits), v_permits)) - COALESCE(SUM(weight), 0) - v_weight)
			FROM asynclock_share WHERE `key` = v_key);
	END IF;
	INSERT INTO asynclock_share VALUES (v_key, v_owner, v_until, v_mode, v_weight, v_permits, v_token, v_fence, v_holder);
	UPDATE asynclock_lock SET owner = 'in share', held_until = IF(v_shared, GREATEST(held_until, v_until), v_until), holder = '',
		token = v_token, clocked = FALSE, last_use = UTC_DATE() WHERE `key` = v_key;
END
//
DROP PROCEDURE IF EXISTS asynclock_stay
//
-- A repeated request of a member sets its TTL.
CREATE PROCEDURE asynclock_stay(
	IN v_key VARBINARY(1536), IN v_owner VARBINARY(128), IN v_ttl BIGINT, IN v_now DATETIME(6), OUT v_member BOOLEAN)
BEGIN
	DECLARE v_until DATETIME(6);
	SET v_until = (SELECT held_until FROM asynclock_share WHERE `key` = v_key AND owner = v_owner AND held_until > v_now);
	SET v_member = v_until IS NOT NULL, v_until = GREATEST(v_until, v_now + INTERVAL v_ttl MICROSECOND);
	IF v_member THEN
		UPDATE asynclock_share SET held_until = v_until WHERE `key` = v_key AND owner = v_owner;
		UPDATE asynclock_lock SET held_until = GREATEST(held_until, v_until) WHERE `key` = v_key;
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_renew_share
//
-- Renew what a member has. A larger weight than the client's is lowered: the release of a part may
-- have been lost. A renewal grants nothing, because it locks the rows of many keys. The next
-- request for the key does.
--
-- q is an item of asynclock_renew, and v_status is the answer.
CREATE PROCEDURE asynclock_renew_share(
	IN v_key VARBINARY(1536), IN v_owner VARBINARY(128), IN v_now DATETIME(6), IN q LONGTEXT CHARACTER SET utf8mb4, OUT v_status INT)
BEGIN
	DECLARE v_token BIGINT DEFAULT JSON_EXTRACT(q, '$.token');
	DECLARE v_weight INT DEFAULT COALESCE(JSON_EXTRACT(q, '$.share.weight'), 0);
	DECLARE v_mode INT DEFAULT COALESCE(JSON_EXTRACT(q, '$.share.mode'), 0);
	DECLARE v_member BOOLEAN;
	CALL asynclock_stay(v_key, v_owner, JSON_EXTRACT(q, '$.ttl'), v_now, v_member);
	IF v_member THEN
		UPDATE asynclock_share SET token = GREATEST(token, v_token), weight = IF(v_weight BETWEEN 1 AND weight, v_weight, weight)
			WHERE `key` = v_key AND owner = v_owner;
		UPDATE asynclock_lock SET token = GREATEST(token, v_token), last_use = UTC_DATE() WHERE `key` = v_key;
		SET v_status = 1;
	ELSE
		-- Others that share the key as this owner did have not taken it away.
		SET v_status = IF(EXISTS (SELECT 1 FROM asynclock_share WHERE `key` = v_key AND held_until > v_now AND owner NOT LIKE 'back %'
			AND mode <> v_mode), -3, -2);
	END IF;
END
//
DROP PROCEDURE IF EXISTS asynclock_leave
//
-- End what a member has, or a part of it. The owner of all of a key may go on as a reader.
-- Members have been gathered.
--
-- q is an item of asynclock_release. v_status is 1: done, -2: the owner is no member, -5: the
-- rest is no part of what it has. v_token and v_fence are those of the owner, if it is a reader
-- now.
CREATE PROCEDURE asynclock_leave(
	IN v_key VARBINARY(1536), IN v_owner VARBINARY(128), IN q LONGTEXT CHARACTER SET utf8mb4, IN v_now DATETIME(6),
	OUT v_status INT, OUT v_token BIGINT, OUT v_fence BIGINT)
this: BEGIN
	DECLARE v_used BIGINT DEFAULT JSON_EXTRACT(q, '$.token');
	DECLARE v_keep BIGINT DEFAULT JSON_EXTRACT(q, '$.keep');
	DECLARE v_rest INT DEFAULT COALESCE(JSON_EXTRACT(q, '$.rest.mode'), 0);
	DECLARE v_rest_weight INT DEFAULT COALESCE(JSON_EXTRACT(q, '$.rest.weight'), 0);
	DECLARE v_until DATETIME(6) DEFAULT v_now + INTERVAL v_keep MICROSECOND;
	DECLARE v_mode, v_weight INT DEFAULT 0;
	DECLARE v_left BIGINT;
	DECLARE v_holder VARBINARY(512);
	DECLARE v_back VARBINARY(192); -- the name of what is kept back: no part is given up twice
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	SET v_token = 0, v_fence = 0, v_status = 1;
	SELECT TIMESTAMPDIFF(MICROSECOND, v_now, held_until), holder INTO v_left, v_holder FROM asynclock_lock WHERE `key` = v_key AND owner = v_owner;
	IF v_left IS NOT NULL AND v_rest <> 1 THEN
		SET v_status = -5;
		LEAVE this;
	ELSEIF v_left IS NOT NULL THEN
		-- Its fence is larger than all tokens that it may have used itself.
		UPDATE asynclock_lock SET token = GREATEST(token, v_used) WHERE `key` = v_key;
		CALL asynclock_join(v_key, v_owner, v_left, v_holder, 1, 0, 0, 0);
		SELECT token, fence INTO v_token, v_fence FROM asynclock_share WHERE `key` = v_key AND owner = v_owner;
		LEAVE this;
	END IF;
	SELECT mode, weight, token, fence INTO v_mode, v_weight, v_token, v_fence FROM asynclock_share WHERE `key` = v_key AND owner = v_owner;
	SET v_back = CONCAT('back ', v_rest_weight, ' ', v_token, ' ', v_owner);
	IF v_mode = 0 THEN
		SET v_status = -2;
	ELSEIF v_rest = 0 THEN
		UPDATE asynclock_lock SET token = GREATEST(token, v_used) WHERE `key` = v_key;
		IF v_keep > 0 THEN
			UPDATE asynclock_share SET owner = v_back, held_until = v_until WHERE `key` = v_key AND owner = v_owner;
		ELSE
			DELETE FROM asynclock_share WHERE `key` = v_key AND owner = v_owner;
		END IF;
	ELSEIF v_rest <> v_mode THEN
		SET v_status = -5;
	ELSEIF v_mode = 2 AND v_rest_weight < v_weight THEN
		UPDATE asynclock_share SET weight = v_rest_weight WHERE `key` = v_key AND owner = v_owner;
		IF v_keep > 0 THEN
			INSERT INTO asynclock_share SELECT `key`, v_back, v_until, mode, v_weight - v_rest_weight, permits, token, fence, holder
				FROM asynclock_share WHERE `key` = v_key AND owner = v_owner;
		END IF;
	END IF;
	CALL asynclock_gather(v_key, v_now);
END
//
DROP PROCEDURE IF EXISTS asynclock_pass
//
-- Give a key to the first in its queue and then to the next ones, as long as they fit beside
-- each other. The key is free, or with v_shared its members have been gathered. The requesting
-- owner gets it in the answer and for its whole TTL. Any other owner has to poll, and gets the
-- key for its grant TTL. If that owner is gone, the key is stuck no longer than that.
CREATE PROCEDURE asynclock_pass(IN v_key VARBINARY(1536), IN v_asking VARBINARY(128), IN v_ttl BIGINT, IN v_shared BOOLEAN)
BEGIN
	DECLARE v_ticket, v_grant BIGINT;
	DECLARE v_owner VARBINARY(128);
	DECLARE v_holder VARBINARY(512);
	DECLARE v_mode, v_weight, v_extra, v_permits, v_granted INT DEFAULT 0;
	DECLARE v_fits BOOLEAN DEFAULT TRUE;
	DECLARE v_large BOOLEAN DEFAULT FALSE;
	DELETE FROM asynclock_waiter WHERE `key` = v_key AND alive_until <= UTC_TIMESTAMP(6);
	-- One request must not take too long; that of the next waiter goes on.
	WHILE v_fits AND v_granted < 64 DO
		SET v_ticket = (SELECT MIN(ticket) FROM asynclock_waiter WHERE `key` = v_key);
		IF v_ticket IS NULL THEN
			SET v_fits = FALSE;
		ELSE
			SELECT owner, grant_ttl, holder, mode, weight, extra, permits INTO v_owner, v_grant, v_holder, v_mode, v_weight, v_extra, v_permits
				FROM asynclock_waiter WHERE `key` = v_key AND ticket = v_ticket;
			SET v_large = FALSE;
			IF v_mode = 2 THEN
				CALL asynclock_too_much(v_key, v_weight, v_large);
			END IF;
			IF v_shared AND NOT v_large THEN
				CALL asynclock_fits(v_key, v_mode, v_weight, v_permits, v_fits);
			END IF;
		END IF;
		IF v_fits THEN
			DELETE FROM asynclock_waiter WHERE `key` = v_key AND ticket = v_ticket;
			SET v_grant = IF(v_owner = v_asking, v_ttl, v_grant), v_granted = v_granted + 1;
			IF v_large THEN
				SET v_grant = NULL; -- its next request is refused
			ELSEIF v_mode > 0 THEN
				CALL asynclock_join(v_key, v_owner, v_grant, v_holder, v_mode, v_weight, v_extra, v_permits);
				SET v_shared = TRUE;
			ELSE
				CALL asynclock_grant(v_key, v_owner, v_grant, v_holder);
				SET v_fits = FALSE;
			END IF;
		END IF;
	END WHILE;
END
//
DROP PROCEDURE IF EXISTS asynclock_acquire_one
//
-- Acquire: take the key, or join its queue, or do neither. A repetition for the same owner is
-- the waiter's heartbeat. By it the waiter also learns that it was granted the key.
--
-- items    key, owner, ttl, grant, alive, wait, limit, ticket, holder, share
--          (mode, weight, extra, permits; without it the owner wants all of the key)
-- answers  s: 1 granted (token, clocked, waiters, fence, weight), 2 waiting (left, rank, ticket,
--          mark), 3 held (left, holder, token, waiters), 4 full, 5 gone, 6 too much, -4 the row is
--          locked; with 2 and 3 what asynclock_info says, if the key is shared; of permits the limit
--          in force
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
	DECLARE v_ticket, v_token, v_waiters, v_fence BIGINT;
	DECLARE v_now, v_until DATETIME(6);
	DECLARE v_clocked, v_taken, v_member, v_fits, v_large BOOLEAN DEFAULT FALSE;
	DECLARE v_mode, v_weight, v_extra, v_permits, v_found INT DEFAULT 0;

	IF JSON_EXTRACT(q, '$.share') IS NOT NULL THEN
		SET v_mode = JSON_EXTRACT(q, '$.share.mode'), v_weight = JSON_EXTRACT(q, '$.share.weight'),
			v_extra = JSON_EXTRACT(q, '$.share.extra'), v_permits = JSON_EXTRACT(q, '$.share.permits');
	END IF;
	SET v_asking = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
	SET v_holder = JSON_UNQUOTE(JSON_EXTRACT(q, '$.holder'));
	IF NOT v_wait THEN -- a poll while another has all of the key locks no row
		SELECT held_until, holder, token INTO v_until, v_other, v_token FROM asynclock_lock
			WHERE `key` = v_key AND held_until > UTC_TIMESTAMP(6) AND NOT owner <=> v_asking AND NOT owner <=> 'in share'
				AND NOT EXISTS (SELECT 1 FROM asynclock_gone g WHERE g.owner = v_asking);
		SET v_now = UTC_TIMESTAMP(6);
		IF v_mode = 2 THEN
			CALL asynclock_too_much(v_key, v_weight, v_large);
		END IF;
		IF v_until > v_now AND NOT v_large THEN
			SET answer = CONCAT('{"s": 3, "left": ', TIMESTAMPDIFF(MICROSECOND, v_now, v_until),
				', "holder": ', JSON_QUOTE(CONVERT(v_other USING utf8mb4)), ', "token": ', v_token, ', "waiters": ',
				(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now), '}');
			IF v_mode = 2 THEN
				CALL asynclock_told(v_key, v_permits, answer);
			END IF;
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
	IF v_owner = 'in share' THEN
		CALL asynclock_gather(v_key, v_now);
		CALL asynclock_stay(v_key, v_asking, v_ttl, v_now, v_member);
		SELECT owner, held_until INTO v_owner, v_until FROM asynclock_lock WHERE `key` = v_key;
	END IF;
	SET v_waiters = (SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now);
	IF v_mode = 2 THEN -- as of now, with the row locked
		CALL asynclock_too_much(v_key, v_weight, v_large);
	END IF;

	IF v_owner = v_asking AND v_until > v_now THEN
		UPDATE asynclock_lock SET held_until = GREATEST(held_until, v_now + INTERVAL v_ttl MICROSECOND) WHERE `key` = v_key;
	ELSEIF EXISTS (SELECT 1 FROM asynclock_gone WHERE owner = v_asking AND gone_until > v_now) AND NOT v_member THEN
		SET answer = '{"s": 5}';
		LEAVE this;
	ELSEIF v_large AND NOT v_member THEN
		CALL asynclock_refuse(v_key, v_asking, answer);
		LEAVE this;
	ELSEIF NOT v_member THEN
		SET v_ticket = (SELECT MIN(ticket) FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking AND alive_until > v_now);
		IF v_ticket IS NULL AND v_owner = 'in share' THEN -- whoever keeps the next ones out may have died
			CALL asynclock_pass(v_key, NULL, 0, TRUE);
			SET v_waiters = (SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now);
			CALL asynclock_fits(v_key, v_mode, v_weight, v_permits, v_fits);
		END IF;
		IF v_ticket IS NOT NULL THEN
			UPDATE asynclock_waiter SET alive_until = v_now + INTERVAL v_alive MICROSECOND, grant_ttl = v_grant, holder = v_holder,
				mode = v_mode, weight = v_weight, extra = v_extra, permits = v_permits
				WHERE `key` = v_key AND ticket = v_ticket;
		ELSEIF v_mode > 0 AND v_waiters = 0 AND (v_until <= v_now OR v_fits) THEN
			CALL asynclock_join(v_key, v_asking, v_ttl, v_holder, v_mode, v_weight, v_extra, v_permits);
		ELSEIF v_until <= v_now AND v_waiters = 0 THEN
			CALL asynclock_grant(v_key, v_asking, v_ttl, v_holder);
		ELSEIF NOT v_wait THEN
			CALL asynclock_info(v_key, answer);
			SET answer = JSON_SET(answer, '$.s', 3);
			IF v_mode = 2 THEN
				CALL asynclock_told(v_key, v_permits, answer);
			END IF;
			LEAVE this;
		ELSE
			SET v_ticket = JSON_EXTRACT(q, '$.ticket'); -- the place of one that was dropped, and comes back
			IF v_ticket = 0 AND v_limit BETWEEN 1 AND v_waiters THEN
				SET answer = '{"s": 4}';
				IF v_mode = 2 THEN
					CALL asynclock_told(v_key, v_permits, answer);
				END IF;
				LEAVE this;
			END IF;
			DELETE FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking;
			-- Dead waiters are deleted, too. There are many of them if the key is held for
			-- long and clients come and go.
			DELETE FROM asynclock_waiter WHERE `key` = v_key AND alive_until <= v_now;
			INSERT INTO asynclock_waiter (`key`, ticket, owner, alive_until, since, grant_ttl, holder, mode, weight, extra, permits)
				VALUES (v_key, NULLIF(v_ticket, 0), v_asking, v_now + INTERVAL v_alive MICROSECOND, v_now, v_grant, v_holder,
					v_mode, v_weight, v_extra, v_permits);
			SET v_ticket = (SELECT ticket FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking);
		END IF;
		IF v_ticket IS NOT NULL AND v_owner = 'in share' THEN
			CALL asynclock_pass(v_key, v_asking, v_ttl, TRUE);
		ELSEIF v_ticket IS NOT NULL AND v_until <= v_now THEN
			CALL asynclock_pass(v_key, v_asking, v_ttl, FALSE);
		END IF;
	END IF;

	SELECT owner, held_until, token, clocked INTO v_owner, v_until, v_token, v_clocked FROM asynclock_lock WHERE `key` = v_key;
	IF v_owner = v_asking AND v_until > v_now THEN
		SET answer = CONCAT('{"s": 1, "token": ', v_token, ', "clocked": ', IF(v_clocked, 'true', 'false'), ', "waiters": ',
			(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now), '}');
		LEAVE this;
	ELSEIF v_owner = 'in share' THEN
		SET v_found = NULL;
		SELECT mode, CONCAT('{"s": 1, "token": ', token, ', "fence": ', fence, ', "weight": ', weight, ', "waiters": ',
			(SELECT COUNT(*) FROM asynclock_waiter w WHERE w.`key` = v_key AND w.alive_until > v_now), '}') INTO v_found, answer
			FROM asynclock_share WHERE `key` = v_key AND owner = v_asking AND held_until > v_now;
		IF v_found IS NOT NULL THEN
			IF v_found = 2 THEN
				CALL asynclock_told(v_key, NULL, answer);
			END IF;
			LEAVE this;
		END IF;
		CALL asynclock_info(v_key, answer);
	ELSE
		SET answer = CONCAT('{"left": ', GREATEST(TIMESTAMPDIFF(MICROSECOND, v_now, v_until), 0), '}');
	END IF;
	SET answer = CONCAT(LEFT(answer, CHAR_LENGTH(answer) - 1), ', "s": 2, "ticket": ', v_ticket, ', "mark": ', v_token, ', "rank": ',
		(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND ticket < v_ticket AND alive_until > v_now), '}');
	IF v_mode = 2 THEN
		CALL asynclock_told(v_key, v_permits, answer);
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
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
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
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
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
	WHILE i < v_limit AND v_key IS NOT NULL DO
		SELECT `key` INTO v_key FROM asynclock_note WHERE note_until < UTC_TIMESTAMP(6)
			ORDER BY note_until LIMIT 1 FOR UPDATE SKIP LOCKED;
		DELETE FROM asynclock_note WHERE `key` = v_key;
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
			DELETE FROM asynclock_share WHERE `key` = v_key; -- likewise
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
-- items    key, owner, ttl, token, share (mode, weight)
-- answers  s: 1 renewed (waiters, and limit of permits), -2 nobody holds the key, -3 somebody else does, -4 the
--          row is locked
CREATE PROCEDURE asynclock_renew(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_asking, v_owner VARBINARY(128);
	DECLARE v_now, v_until DATETIME(6);
	DECLARE v_ttl BIGINT;
	DECLARE v_permits BOOLEAN;
	DECLARE v_alone BOOLEAN DEFAULT JSON_LENGTH(request, '$.items') = 1;
	DECLARE v_status, v_rows, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET q = JSON_EXTRACT(request, CONCAT('$.items[', i, ']'));
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(q, '$.key')), v_asking = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
		SET v_ttl = JSON_EXTRACT(q, '$.ttl'), v_owner = NULL, v_until = NULL, v_status = -2, v_permits = FALSE;
		find: LOOP
			SELECT owner, held_until INTO v_owner, v_until FROM asynclock_lock WHERE `key` = v_key FOR UPDATE SKIP LOCKED;
			IF v_until IS NOT NULL THEN
				LEAVE find;
			END IF;
			SELECT COUNT(*) INTO v_rows FROM asynclock_lock WHERE `key` = v_key;
			IF v_rows = 0 OR NOT v_alone THEN
				LEAVE find;
			END IF;
			IF TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= @asynclock_until THEN
				SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'asynclock: the row is locked';
			END IF;
			DO SLEEP(0.001);
		END LOOP;
		SET v_now = UTC_TIMESTAMP(6); -- for finding the row may have taken a while
		IF v_owner = v_asking AND v_until > v_now THEN
			SET v_status = 1;
			UPDATE asynclock_lock SET held_until = GREATEST(held_until, v_now + INTERVAL v_ttl MICROSECOND), last_use = UTC_DATE(),
				token = GREATEST(token, CAST(JSON_EXTRACT(q, '$.token') AS SIGNED)) WHERE `key` = v_key;
		ELSEIF v_owner = 'in share' THEN
			CALL asynclock_renew_share(v_key, v_asking, v_now, q, v_status);
			SET v_permits = v_status = 1 AND JSON_EXTRACT(q, '$.share.mode') = 2;
		ELSE
			SELECT CASE owner WHEN v_asking THEN -4 WHEN 'in share' THEN -4 WHEN '' THEN -2 ELSE -3 END INTO v_status
				FROM asynclock_lock WHERE `key` = v_key AND held_until > v_now;
		END IF;
		SET v_answer = CONCAT('{"s": ', v_status, ', "waiters": ',
			(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now), '}');
		IF v_permits THEN
			CALL asynclock_told(v_key, NULL, v_answer);
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), v_answer), i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_release
//
-- Release: end an owner's holding or its place in the queue. The key goes to the next waiter
-- in the same transaction, or is held back for a while longer. Before that, requeue, an item
-- of acquire, joins the queue.
--
-- items    key, owner, token, keep, uncertain, requeue, rest (mode, weight: what the owner keeps)
-- answers  held: the owner held the key until now; requeue: the answer to that; s: 1 the same,
--          -2 nobody holds the key or others share it, -3 somebody else has it, -4 the row is
--          locked, -5 the rest is no part of what is held; token and fence, of a reader
CREATE PROCEDURE asynclock_release(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_requeued, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_asking, v_owner VARBINARY(128);
	DECLARE v_keep, v_token, v_fence BIGINT;
	DECLARE v_held, v_taken, v_shared, v_free BOOLEAN;
	DECLARE v_now, v_until DATETIME(6);
	DECLARE v_status, i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
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
		SET v_token = 0, v_fence = 0, v_shared = v_owner <=> 'in share';
		IF v_shared THEN
			CALL asynclock_gather(v_key, v_now);
		END IF;
		IF v_shared OR v_status = 1 AND JSON_EXTRACT(q, '$.rest') IS NOT NULL THEN
			CALL asynclock_leave(v_key, v_asking, q, v_now, v_status, v_token, v_fence);
		ELSEIF v_status = 1 THEN
			UPDATE asynclock_lock SET owner = IF(v_keep > 0, '', NULL), held_until = v_now + INTERVAL v_keep MICROSECOND,
				token = GREATEST(token, CAST(JSON_EXTRACT(q, '$.token') AS SIGNED)) WHERE `key` = v_key;
		END IF;
		SET v_held = v_status IN (1, -5);
		IF NOT v_held THEN
			DELETE FROM asynclock_waiter WHERE `key` = v_key AND owner = v_asking;
		END IF;
		SET v_requeued = 'null';
		IF JSON_EXTRACT(q, '$.requeue') IS NOT NULL THEN
			CALL asynclock_acquire_one(JSON_EXTRACT(q, '$.requeue'), TRUE, v_requeued); -- the row is ours already
		END IF;
		-- A withdrawal may have been of who kept the others out.
		SELECT owner <=> 'in share', held_until <= v_now INTO v_shared, v_free FROM asynclock_lock WHERE `key` = v_key;
		IF v_shared THEN
			CALL asynclock_pass(v_key, NULL, 0, TRUE);
		ELSEIF v_free THEN
			CALL asynclock_pass(v_key, NULL, 0, FALSE);
		END IF;
		SET v_answers = CONCAT(v_answers, '{"s": ', v_status, ', "held": ', IF(v_held, 'true', 'false'), ', "requeue": ', v_requeued,
			IF(v_fence > 0, CONCAT(', "token": ', v_token, ', "fence": ', v_fence), ''), '}');
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
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
	DECLARE v_held, v_taken, v_shared BOOLEAN;
	DECLARE v_now, v_until DATETIME(6);
	DECLARE i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key')));
		CALL asynclock_take(v_key, TRUE, v_taken);
		SET v_now = UTC_TIMESTAMP(6), v_meant = JSON_EXTRACT(request, CONCAT('$.items[', i, '].token'));
		SELECT held_until, token, owner <=> 'in share' INTO v_until, v_token, v_shared FROM asynclock_lock WHERE `key` = v_key;
		IF v_shared THEN
			CALL asynclock_gather(v_key, v_now);
			SELECT held_until INTO v_until FROM asynclock_lock WHERE `key` = v_key;
			SET v_token = (SELECT MAX(IF(mode = 1, fence, token)) FROM asynclock_share WHERE `key` = v_key);
		END IF;
		SET v_held = v_until > v_now, v_answer = CONCAT('{"held": ', IF(v_held, 'true', 'false'), '}');
		IF v_held AND v_meant NOT IN (0, v_token) THEN
			CALL asynclock_info(v_key, v_answer);
			SET v_answer = JSON_SET(v_answer, '$.s', 3);
		ELSEIF v_held THEN
			DELETE FROM asynclock_share WHERE `key` = v_key;
			-- The old holder may pass the key on inside its client, with a token for each
			-- microsecond, until it is notified or stops trusting its TTL. The next holder's
			-- token has to be larger than all of these, so that resources refuse them. No TTL is
			-- longer than a day.
			UPDATE asynclock_lock SET
				token = IF(clocked AND owner <> '', GREATEST(token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v_until)), token),
				owner = NULL, held_until = v_now WHERE `key` = v_key;
			CALL asynclock_pass(v_key, NULL, 0, FALSE);
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), v_answer);
		SET i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_limit
//
-- Limit: store how many permits a key has, or forget it, and pass the key on.
--
-- items    key, limit (0: forget it)
-- answers  s: 1 done
CREATE PROCEDURE asynclock_limit(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_taken, v_shared, v_free BOOLEAN;
	DECLARE v_limit, i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key')));
		SET v_limit = JSON_EXTRACT(request, CONCAT('$.items[', i, '].limit'));
		CALL asynclock_take(v_key, TRUE, v_taken);
		IF v_limit > 0 THEN
			INSERT INTO asynclock_permits VALUES (v_key, v_limit) ON DUPLICATE KEY UPDATE permits = v_limit;
		ELSE
			DELETE FROM asynclock_permits WHERE `key` = v_key;
		END IF;
		SELECT owner <=> 'in share' INTO v_shared FROM asynclock_lock WHERE `key` = v_key;
		IF v_shared THEN
			CALL asynclock_gather(v_key, UTC_TIMESTAMP(6));
		END IF;
		SELECT owner <=> 'in share', held_until <= UTC_TIMESTAMP(6) INTO v_shared, v_free FROM asynclock_lock WHERE `key` = v_key;
		IF v_shared OR v_free THEN
			CALL asynclock_pass(v_key, NULL, 0, v_shared);
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), '{"s": 1}'), i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_info
//
-- The state of a key: held, left, holder, token, waiters. If the key is shared: also mode,
-- count, used and permits of all members whose time is not over, and soonest, when the first
-- of them ends. It reads all in one statement.
CREATE PROCEDURE asynclock_info(IN v_key VARBINARY(1536), OUT answer LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_now DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
	DECLARE CONTINUE HANDLER FOR NOT FOUND SET answer = '{"held": false}';
	SELECT CONCAT('{"key": ', JSON_QUOTE(CONVERT(`key` USING utf8mb4)), ', "name": ', JSON_QUOTE(CONVERT(`key` USING utf8mb4)),
		', "held": ', IF(last > v_now, 'true', 'false'),
		', "left": ', GREATEST(TIMESTAMPDIFF(MICROSECOND, v_now, last), 0),
		', "holder": ', JSON_QUOTE(CONVERT(holder USING utf8mb4)), ', "token": ', token, ', "waiters": ',
		(SELECT COUNT(*) FROM asynclock_waiter WHERE `key` = v_key AND alive_until > v_now),
		IF(mode > 0, CONCAT(', "mode": ', mode, ', "count": ', members, ', "used": ', used, ', "permits": ', permits,
			', "soonest": ', TIMESTAMPDIFF(MICROSECOND, v_now, soonest)), ''), '}')
		INTO answer FROM (
			SELECT l.`key`, IF(l.owner <=> 'in share', COALESCE(m.last, '1970-01-01'), l.held_until) AS last,
				IF(l.owner <=> 'in share', COALESCE(m.holder, ''), l.holder) AS holder, IF(l.owner <=> 'in share', COALESCE(m.token, 0), l.token) AS token,
				IF(l.owner <=> 'in share', COALESCE(m.mode, 0), 0) AS mode, m.members, m.used,
					COALESCE((SELECT permits FROM asynclock_permits WHERE `key` = v_key), m.permits) AS permits, m.soonest
			FROM asynclock_lock l CROSS JOIN (
				SELECT MIN(mode) AS mode, COUNT(*) AS members, SUM(weight) AS used, MIN(permits) AS permits, MIN(held_until) AS soonest,
					MAX(held_until) AS last, MIN(holder) AS holder, MAX(IF(mode = 1, fence, token)) AS token
				FROM asynclock_share WHERE `key` = v_key AND held_until > v_now) m
			WHERE l.`key` = v_key) k;
END
//
DROP PROCEDURE IF EXISTS asynclock_inspect
//
-- Inspect: who holds the key, and the first of them and in its queue. A client calls it without a key to
-- check that all routines exist.
--
-- items    key, size (of the queue to show, and of the members)
-- answers  what asynclock_info says, queue, of {holder, age}, and holders, of {holder, weight,
--          left, token}; stored: the limit that is stored
CREATE PROCEDURE asynclock_inspect(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers, v_queue, v_holders LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_token, v_last, v_left BIGINT DEFAULT 0;
	DECLARE v_size, i INT DEFAULT 0;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key')));
		CALL asynclock_info(v_key, v_answer);
		SET v_queue = '', v_last = 0, v_left = JSON_EXTRACT(request, CONCAT('$.items[', i, '].size')), v_size = v_left, v_holders = '[]';
		IF JSON_EXTRACT(v_answer, '$.mode') IS NOT NULL THEN
			SET v_holders = (SELECT JSON_ARRAYAGG(JSON_OBJECT('holder', CONVERT(holder USING utf8mb4), 'weight', weight,
				'left', TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), held_until), 'token', IF(mode = 1, fence, token)))
				FROM (SELECT * FROM asynclock_share WHERE `key` = v_key AND held_until > UTC_TIMESTAMP(6) ORDER BY token LIMIT v_size) m);
		END IF;
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
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), LEFT(v_answer, CHAR_LENGTH(v_answer) - 1), ', "queue": [', v_queue, '], "holders": ', COALESCE(v_holders, '[]'),
			', "stored": ', COALESCE((SELECT permits FROM asynclock_permits WHERE `key` = v_key), 0), '}');
		SET i = i + 1;
	END WHILE;
	CALL asynclock_lowest(v_token);
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_write_note
//
-- Write note: replace the note of a key, if the owner has all of the key. It changes nothing of the
-- holding.
--
-- items    key, owner, ttl (of the note), token, seq (among the notes of that lease), note
-- answers  s: 1 written, -2 nobody holds the key, -3 somebody else does or the note there is a
--          later one
CREATE PROCEDURE asynclock_write_note(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE q, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE v_asking, v_owner VARBINARY(128);
	DECLARE v_now, v_until DATETIME(6);
	DECLARE v_ttl, v_token, v_seq, v_last_token, v_last_seq BIGINT;
	DECLARE v_status, v_rows, i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET q = JSON_EXTRACT(request, CONCAT('$.items[', i, ']'));
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(q, '$.key')), v_asking = JSON_UNQUOTE(JSON_EXTRACT(q, '$.owner'));
		SET v_ttl = JSON_EXTRACT(q, '$.ttl'), v_token = JSON_EXTRACT(q, '$.token'), v_seq = JSON_EXTRACT(q, '$.seq');
		SET v_owner = NULL, v_until = NULL, v_last_token = 0, v_last_seq = 0;
		find: LOOP
			SELECT owner, held_until INTO v_owner, v_until FROM asynclock_lock WHERE `key` = v_key FOR UPDATE SKIP LOCKED;
			IF v_until IS NOT NULL THEN
				LEAVE find;
			END IF;
			SELECT COUNT(*) INTO v_rows FROM asynclock_lock WHERE `key` = v_key;
			IF v_rows = 0 THEN
				LEAVE find;
			END IF;
			IF TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= @asynclock_until THEN
				SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'asynclock: the row is locked';
			END IF;
			DO SLEEP(0.001);
		END LOOP;
		SET v_now = UTC_TIMESTAMP(6); -- for finding the row may have taken a while
		SET v_status = CASE WHEN v_owner = v_asking AND v_until > v_now THEN 1 WHEN v_owner <> '' AND v_until > v_now THEN -3 ELSE -2 END;
		IF v_status = 1 THEN
			SELECT token, seq INTO v_last_token, v_last_seq FROM asynclock_note WHERE `key` = v_key AND note_until > v_now;
			IF v_last_token > v_token OR v_last_token = v_token AND v_last_seq > v_seq THEN
				SET v_status = -3;
			ELSE
				REPLACE INTO asynclock_note (`key`, token, seq, data, note_until) VALUES (v_key, v_token, v_seq,
					COALESCE(JSON_UNQUOTE(JSON_EXTRACT(q, '$.note')), ''), v_now + INTERVAL v_ttl MICROSECOND);
			END IF;
		END IF;
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), '{"s": ', v_status, '}');
		SET i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_read_note
//
-- Read note: the note of a key, and how the key stands.
--
-- items    key
-- answers  what asynclock_info says, note, note_token (if there is one), clock
--
-- The note is read first. A note that is older than the holder is nothing new to a client, but one that
-- is newer would look like the holder's.
CREATE PROCEDURE asynclock_read_note(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers, v_note LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536);
	DECLARE i INT DEFAULT 0;
	DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
		RESIGNAL;
	END;
	CALL asynclock_begin(request);
	WHILE i < JSON_LENGTH(request, '$.items') DO
		SET v_key = JSON_UNQUOTE(JSON_EXTRACT(request, CONCAT('$.items[', i, '].key'))), v_note = '';
		SELECT CONCAT(', "note": ', JSON_QUOTE(CONVERT(data USING utf8mb4)), ', "note_token": ', token) INTO v_note
			FROM asynclock_note WHERE `key` = v_key AND note_until > UTC_TIMESTAMP(6);
		CALL asynclock_info(v_key, v_answer);
		SET v_answers = CONCAT(v_answers, IF(i > 0, ',', ''), LEFT(v_answer, CHAR_LENGTH(v_answer) - 1), v_note,
			', "clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), '}');
		SET i = i + 1;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
DROP PROCEDURE IF EXISTS asynclock_list
//
-- List: the next keys with a prefix that are held or waited for.
--
-- items    after (the key where the page before ended), prefix, size
-- answers  what asynclock_info says, and stored
CREATE PROCEDURE asynclock_list(IN request LONGTEXT CHARACTER SET utf8mb4)
BEGIN
	DECLARE v_answer, v_answers LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
	DECLARE v_key VARBINARY(1536) DEFAULT JSON_UNQUOTE(JSON_EXTRACT(request, '$.items[0].after'));
	DECLARE v_prefix VARBINARY(1536) DEFAULT JSON_UNQUOTE(JSON_EXTRACT(request, '$.items[0].prefix'));
	DECLARE v_left BIGINT DEFAULT JSON_EXTRACT(request, '$.items[0].size');
	DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
		ROLLBACK;
		SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
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
			SET v_answer = CONCAT(LEFT(v_answer, CHAR_LENGTH(v_answer) - 1), ', "stored": ',
				COALESCE((SELECT permits FROM asynclock_permits WHERE `key` = v_key), 0), '}');
			SET v_answers = CONCAT(v_answers, IF(v_answers = '', '', ','), v_answer);
		END IF;
	END WHILE;
	COMMIT;
	SET @@innodb_lock_wait_timeout = CAST(COALESCE(@asynclockPatience, @@innodb_lock_wait_timeout) AS UNSIGNED), @asynclockPatience = NULL;
	SELECT CAST(CONCAT('{"clock": ', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ', "items": [', v_answers, ']}') AS BINARY);
END
//
