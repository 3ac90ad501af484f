-- SPDX-License-Identifier: Apache-2.0
--
-- Locks shared with Spring Integration 7.x, on PostgreSQL. Migrate runs this file, and
-- replaces the prefix INT_ if another one is set. psql -f runs it as it is. It can be run
-- again, also by a later release.
--
-- For releases up to 6.5, lines that end in "-- 7.x" are left out and EXPIRED_AFTER becomes
-- CREATED_DATE everywhere. MigrationSQL prints that version.

-- Java's own table, as its releases create it.
CREATE TABLE IF NOT EXISTS INT_LOCK (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL, -- 7.x
	EXPIRED_AFTER TIMESTAMP NOT NULL,
	PRIMARY KEY (LOCK_KEY, REGION)
);

-- A row for each key that a Go client has used, with what Java's table has no column for: the
-- key's name, of which LOCK_KEY is a hash, its holder in words, and its last token. Java
-- neither reads nor writes this table. Only INT_LOCK decides whether a lock is held.
CREATE TABLE IF NOT EXISTS INT_LOCK_LEASE (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	KEY_NAME TEXT NOT NULL,
	CLIENT_ID CHAR(36),              -- of the last Go holder
	HOLDER TEXT NOT NULL DEFAULT '',
	TOKEN BIGINT NOT NULL DEFAULT 0,
	CLOCKED BOOLEAN NOT NULL DEFAULT FALSE, -- the token came from the clock
	LAST_USE DATE NOT NULL,
	PRIMARY KEY (LOCK_KEY, REGION)
);
DO $$ BEGIN -- for CREATE INDEX itself keeps writers out while it finds that there is one
	IF to_regclass('INT_LOCK_LEASE_LAST_USE') IS NULL THEN
		CREATE INDEX IF NOT EXISTS INT_LOCK_LEASE_LAST_USE ON INT_LOCK_LEASE (LAST_USE);
	END IF;
END $$;

-- Owners that were withdrawn while one of their requests had no answer yet.
CREATE TABLE IF NOT EXISTS INT_LOCK_GONE (
	CLIENT_ID CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	GONE_UNTIL TIMESTAMPTZ NOT NULL,
	PRIMARY KEY (CLIENT_ID, REGION)
);
DO $$ BEGIN -- for CREATE INDEX itself keeps writers out while it finds that there is one
	IF to_regclass('INT_LOCK_GONE_UNTIL') IS NULL THEN
		CREATE INDEX IF NOT EXISTS INT_LOCK_GONE_UNTIL ON INT_LOCK_GONE (GONE_UNTIL);
	END IF;
END $$;

-- The largest token of each key that has guarded a transaction. These rows must never be
-- deleted: without its row, a holder that overslept could write.
CREATE TABLE IF NOT EXISTS INT_LOCK_FENCE (
	key TEXT COLLATE "C" PRIMARY KEY, -- REGION, "%%" and LOCK_KEY
	token BIGINT NOT NULL
);

-- The routines take {"schema", "region", "now", "base", "items"} and answer {"clock",
-- "items"}, with an answer for each item, in the same order. "now" is the client's clock in
-- UTC, because Java compares with it. "base" is what Java adds to the column that says when a
-- lock ends: nothing for EXPIRED_AFTER, the TTL of Java's repositories for CREATED_DATE. So a
-- row is live if that column is not before now - base. At equality a lock is still held, as
-- in Java. Durations are in microseconds. "clock" is the server's, since 1970.
--
-- Every statement has to see what others had committed when it began. Only READ COMMITTED
-- gives that. Under any other level the routines refuse to run, and the client then sets that
-- level. They also refuse a client that takes the table for
-- one of another generation.
--
-- A request of one item waits for its rows, for some milliseconds. Then nothing is done, and the
-- client sends it again later: its connection is the application's. A request of several items
-- waits for none, because it would delay others that need its other rows, and their renewals. It
-- answers s: -4 for an item whose rows another transaction has locked. The client then sends this
-- item alone. If another transaction is about to make a row that it needs, nothing is done, and
-- the client sends each item alone.
-- A statement that locks both rows of a key begins with the row of INT_LOCK_LEASE.

CREATE OR REPLACE FUNCTION INT_LOCK_CLOCK(request JSONB) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'asynclock: this needs READ COMMITTED' USING ERRCODE = 'AL001';
	ELSIF request->>'schema' IS DISTINCT FROM 'EXPIRED_AFTER 1' THEN
		RAISE EXCEPTION 'asynclock: these routines go by EXPIRED_AFTER, the client by something else' USING ERRCODE = 'AL002';
	END IF;
	RETURN (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT;
END $$;

-- Whether a request waits for rows.
CREATE OR REPLACE FUNCTION INT_LOCK_ALONE(request JSONB) RETURNS BOOLEAN LANGUAGE sql AS $$
	SELECT jsonb_array_length(request->'items') = 1
$$;

-- Lock the row of INT_LOCK, if there is one. The result is true if the row is ours now or
-- does not exist. Without v_wait it is false if another transaction has the row locked.
CREATE OR REPLACE FUNCTION INT_LOCK_FIND(v_key CHAR(36), v_region VARCHAR(100), v_wait BOOLEAN) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
	IF v_wait THEN
		PERFORM 1 FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region FOR UPDATE;
		RETURN TRUE;
	END IF;
	PERFORM 1 FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region FOR UPDATE SKIP LOCKED;
	RETURN FOUND OR NOT EXISTS (SELECT 1 FROM INT_LOCK WHERE LOCK_KEY = v_key AND REGION = v_region);
END $$;

-- The key's row of INT_LOCK_LEASE, locked, and made if there is none. Without v_wait it is
-- null if another transaction has the row locked. If another one is about to make it, that
-- shows only by waiting for the row. As long as we have the row, Go's requests for this key
-- come one after the other.
CREATE OR REPLACE FUNCTION INT_LOCK_TAKE(v_key CHAR(36), v_region VARCHAR(100), v_name TEXT, v_wait BOOLEAN)
	RETURNS INT_LOCK_LEASE LANGUAGE plpgsql AS $$
DECLARE
	v_lease INT_LOCK_LEASE;
BEGIN
	LOOP
		IF v_wait THEN
			SELECT * INTO v_lease FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region FOR UPDATE;
		ELSE
			SELECT * INTO v_lease FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region FOR UPDATE SKIP LOCKED;
		END IF;
		IF v_lease.LOCK_KEY IS NOT NULL
			OR NOT v_wait AND EXISTS (SELECT 1 FROM INT_LOCK_LEASE WHERE LOCK_KEY = v_key AND REGION = v_region)
		THEN
			RETURN v_lease;
		END IF;
		INSERT INTO INT_LOCK_LEASE (LOCK_KEY, REGION, KEY_NAME, LAST_USE) VALUES (v_key, v_region, v_name, CURRENT_DATE)
			ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;
	END LOOP;
END $$;

-- Acquire: take the key if nobody has it. A repetition for the same owner extends the holding
-- and answers the same.
--
-- items    key, name, owner, ttl, holder
-- answers  s: 1 granted (token, clocked), 3 held (left, holder, token, client: the
--          first digits of the id of a holder that is not ours), 5 gone, -4 a row is locked
CREATE OR REPLACE FUNCTION INT_LOCK_ACQUIRE(request JSONB) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
	v_clock BIGINT := INT_LOCK_CLOCK(request);
	v_region VARCHAR(100) := request->>'region';
	v_now TIMESTAMP := request->>'now';
	v_live TIMESTAMP := v_now - (request->>'base')::BIGINT * INTERVAL '1 microsecond';
	v_stamp TIMESTAMP;
	v_until TIMESTAMP;
	v_client CHAR(36);
	v_lease INT_LOCK_LEASE;
	v_got BOOLEAN;
	v_answer JSONB;
	v_answers JSONB := '[]';
	q RECORD;
BEGIN
	FOR q IN SELECT * FROM jsonb_to_recordset(request->'items')
		AS x(key CHAR(36), name TEXT, owner CHAR(36), ttl BIGINT, holder TEXT)
	LOOP
		v_answer := NULL;
		v_got := FALSE;
		v_stamp := v_live + q.ttl * INTERVAL '1 microsecond';
		SELECT CLIENT_ID, EXPIRED_AFTER INTO v_client, v_until FROM INT_LOCK
			WHERE LOCK_KEY = q.key AND REGION = v_region;
		-- A poll while another has the key writes nothing, and locks nothing.
		IF NOT FOUND OR v_client = q.owner OR v_until < v_live THEN
			v_lease := INT_LOCK_TAKE(q.key, v_region, q.name, INT_LOCK_ALONE(request));
			IF v_lease.LOCK_KEY IS NULL OR NOT INT_LOCK_FIND(q.key, v_region, INT_LOCK_ALONE(request)) THEN
				v_answers := v_answers || '{"s": -4}';
				CONTINUE;
			END IF;
			SELECT CLIENT_ID, EXPIRED_AFTER INTO v_client, v_until FROM INT_LOCK
				WHERE LOCK_KEY = q.key AND REGION = v_region;
			v_got := NOT FOUND OR v_until < v_live;
			IF v_client = q.owner AND v_until >= v_live THEN
				UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, v_stamp)
					WHERE LOCK_KEY = q.key AND REGION = v_region;
				v_answer := jsonb_build_object('s', 1, 'token', v_lease.TOKEN, 'clocked', v_lease.CLOCKED);
			END IF;
		END IF;
		IF v_answer IS NULL AND EXISTS (SELECT 1 FROM INT_LOCK_GONE
			WHERE CLIENT_ID = q.owner AND REGION = v_region AND GONE_UNTIL > clock_timestamp())
		THEN
			v_answer := '{"s": 5}';
		ELSIF v_got THEN
			IF v_until IS NULL THEN
				INSERT INTO INT_LOCK (
					LOCK_KEY, REGION, CLIENT_ID,
					CREATED_DATE, -- 7.x
					EXPIRED_AFTER)
					VALUES (
					q.key, v_region, q.owner,
					v_now, -- 7.x
					v_stamp)
					ON CONFLICT (LOCK_KEY, REGION) DO NOTHING;
				v_got := FOUND; -- not if Java was first
			ELSE
				UPDATE INT_LOCK SET CLIENT_ID = q.owner, EXPIRED_AFTER = v_stamp WHERE LOCK_KEY = q.key AND REGION = v_region;
			END IF;
			IF v_got THEN
				v_clock := INT_LOCK_CLOCK(request);
				UPDATE INT_LOCK_LEASE SET KEY_NAME = q.name, CLIENT_ID = q.owner, HOLDER = q.holder, LAST_USE = CURRENT_DATE,
					TOKEN = GREATEST(v_lease.TOKEN + 1, v_clock), CLOCKED = v_clock > v_lease.TOKEN
					WHERE LOCK_KEY = q.key AND REGION = v_region
					RETURNING * INTO v_lease;
				v_answer := jsonb_build_object('s', 1, 'token', v_lease.TOKEN, 'clocked', v_lease.CLOCKED);
			END IF;
		END IF;
		IF v_answer IS NULL THEN
			v_answer := INT_LOCK_HOLDER(q.key, v_region, v_live) || '{"s": 3}';
		END IF;
		v_answers := v_answers || v_answer;
	END LOOP;
	-- So rows are deleted eight times as fast as they are made, even if each key is used only
	-- once.
	IF random() < 0.02 * jsonb_array_length(request->'items') THEN
		PERFORM INT_LOCK_SWEEP(v_live, GREATEST(400, 8 * jsonb_array_length(request->'items')));
	END IF;
	RETURN jsonb_build_object('clock', v_clock, 'items', v_answers);
END $$;

-- Sweep: forget keys that no Go client has used for a day, and owners that are not heard of
-- any more, up to v_limit of each. It waits for no row. The key's row in INT_LOCK goes, too,
-- if it expired more than a day ago by both the client's clock and the server's. Java would
-- leave it: it only removes rows that it made itself, and the row of a key that is held back
-- has an id that nobody has.
--
-- A row whose token is ahead of the clock stays, because a new row would begin at the clock.
CREATE OR REPLACE FUNCTION INT_LOCK_SWEEP(v_live TIMESTAMP, v_limit INT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
	v_dead TIMESTAMP := LEAST(v_live, clock_timestamp() AT TIME ZONE 'UTC') - INTERVAL '1 day';
BEGIN
	DELETE FROM INT_LOCK_GONE WHERE (CLIENT_ID, REGION) IN (
		SELECT CLIENT_ID, REGION FROM INT_LOCK_GONE WHERE GONE_UNTIL < clock_timestamp()
		ORDER BY GONE_UNTIL LIMIT v_limit FOR UPDATE SKIP LOCKED);
	DELETE FROM INT_LOCK WHERE (LOCK_KEY, REGION) IN (
		SELECT k.LOCK_KEY, k.REGION FROM INT_LOCK_LEASE l JOIN INT_LOCK k ON k.LOCK_KEY = l.LOCK_KEY AND k.REGION = l.REGION
		WHERE l.LAST_USE < CURRENT_DATE - 1 AND k.EXPIRED_AFTER < v_dead
		ORDER BY l.LAST_USE LIMIT v_limit FOR UPDATE SKIP LOCKED);
	DELETE FROM INT_LOCK_LEASE WHERE (LOCK_KEY, REGION) IN (
		SELECT LOCK_KEY, REGION FROM INT_LOCK_LEASE l
		WHERE LAST_USE < CURRENT_DATE - 1 AND TOKEN < (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT
			AND NOT EXISTS (SELECT 1 FROM INT_LOCK k WHERE k.LOCK_KEY = l.LOCK_KEY AND k.REGION = l.REGION)
		ORDER BY LAST_USE LIMIT v_limit FOR UPDATE SKIP LOCKED);
END $$;

-- How long it is until then, which may be for ever.
CREATE OR REPLACE FUNCTION INT_LOCK_LEFT(v_until TIMESTAMP, v_live TIMESTAMP) RETURNS BIGINT LANGUAGE sql AS $$
	SELECT CASE WHEN isfinite(v_until) THEN LEAST(EXTRACT(EPOCH FROM v_until - v_live) * 1000000, 9e18)::BIGINT
		ELSE 9000000000000000000 END
$$;

-- The holder of a key, for people to read: held, left, holder, token, or client if Java holds
-- it.
CREATE OR REPLACE FUNCTION INT_LOCK_HOLDER(v_key CHAR(36), v_region VARCHAR(100), v_live TIMESTAMP)
	RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
	v_answer JSONB;
BEGIN
	SELECT jsonb_build_object('held', TRUE,
			'left', INT_LOCK_LEFT(k.EXPIRED_AFTER, v_live),
			'holder', COALESCE(l.HOLDER, ''), 'token', COALESCE(l.TOKEN, 0),
			'client', CASE WHEN l.LOCK_KEY IS NULL THEN LEFT(k.CLIENT_ID, 8) ELSE '' END)
		INTO v_answer
		FROM INT_LOCK k LEFT JOIN INT_LOCK_LEASE l
			ON l.LOCK_KEY = k.LOCK_KEY AND l.REGION = k.REGION AND l.CLIENT_ID = k.CLIENT_ID
		WHERE k.LOCK_KEY = v_key AND k.REGION = v_region AND k.EXPIRED_AFTER >= v_live;
	RETURN COALESCE(v_answer, '{"held": false}');
END $$;

-- Renew: extend holdings. It never shortens a holding and never brings back one that has
-- ended, which Java's own does.
--
-- items    key, owner, ttl, token
-- answers  s: 1 renewed, -2 nobody holds the key, -3 somebody else does, -4 the row is
--          locked
CREATE OR REPLACE FUNCTION INT_LOCK_RENEW(request JSONB) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
	v_clock BIGINT := INT_LOCK_CLOCK(request);
	v_region VARCHAR(100) := request->>'region';
	v_live TIMESTAMP := (request->>'now')::TIMESTAMP - (request->>'base')::BIGINT * INTERVAL '1 microsecond';
	v_status INT;
	v_writes BOOLEAN; -- there is a token to write back, or a new day
	v_lease INT_LOCK_LEASE;
	v_answers JSONB := '[]';
	q RECORD;
BEGIN
	FOR q IN SELECT * FROM jsonb_to_recordset(request->'items')
		AS x(key CHAR(36), owner CHAR(36), ttl BIGINT, token BIGINT)
	LOOP
		v_writes := EXISTS (SELECT 1 FROM INT_LOCK_LEASE
			WHERE LOCK_KEY = q.key AND REGION = v_region AND CLIENT_ID = q.owner AND (TOKEN < q.token OR LAST_USE < CURRENT_DATE));
		IF v_writes THEN
			v_lease := INT_LOCK_TAKE(q.key, v_region, '', INT_LOCK_ALONE(request));
		END IF;
		IF v_writes AND v_lease.LOCK_KEY IS NULL OR NOT INT_LOCK_FIND(q.key, v_region, INT_LOCK_ALONE(request)) THEN
			v_status := -4;
		ELSE
			SELECT CASE CLIENT_ID WHEN q.owner THEN 1 WHEN '00000000-0000-0000-0000-000000000000' THEN -2 ELSE -3 END
				INTO v_status FROM INT_LOCK
				WHERE LOCK_KEY = q.key AND REGION = v_region AND EXPIRED_AFTER >= v_live;
		END IF;
		IF v_status = 1 THEN
			UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, v_live + q.ttl * INTERVAL '1 microsecond')
				WHERE LOCK_KEY = q.key AND REGION = v_region;
		END IF;
		IF v_status = 1 AND v_writes THEN
			UPDATE INT_LOCK_LEASE SET TOKEN = GREATEST(TOKEN, q.token), LAST_USE = CURRENT_DATE
				WHERE LOCK_KEY = q.key AND REGION = v_region AND CLIENT_ID = q.owner;
		END IF;
		v_answers := v_answers || jsonb_build_object('s', COALESCE(v_status, -2));
	END LOOP;
	RETURN jsonb_build_object('clock', v_clock, 'items', v_answers);
END $$;

-- Release: end a holding, or hold the key back for a while longer, under an id that nobody
-- has.
--
-- items    key, name, owner, token, keep, uncertain
-- answers  held: the owner held the key until now; s: 1 the same, -2 nobody holds the key, -3
--          somebody else does, -4 a row is locked
CREATE OR REPLACE FUNCTION INT_LOCK_RELEASE(request JSONB) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
	v_clock BIGINT := INT_LOCK_CLOCK(request);
	v_region VARCHAR(100) := request->>'region';
	v_live TIMESTAMP := (request->>'now')::TIMESTAMP - (request->>'base')::BIGINT * INTERVAL '1 microsecond';
	v_kept CONSTANT CHAR(36) := '00000000-0000-0000-0000-000000000000';
	v_until TIMESTAMP;
	v_status INT;
	v_held BOOLEAN;
	v_lease INT_LOCK_LEASE;
	v_answers JSONB := '[]';
	q RECORD;
BEGIN
	FOR q IN SELECT * FROM jsonb_to_recordset(request->'items')
		AS x(key CHAR(36), name TEXT, owner CHAR(36), token BIGINT, keep BIGINT, uncertain BOOLEAN)
	LOOP
		-- A request of the same owner that is under way has this row or comes after us.
		v_lease := INT_LOCK_TAKE(q.key, v_region, q.name, INT_LOCK_ALONE(request));
		IF v_lease.LOCK_KEY IS NULL OR NOT INT_LOCK_FIND(q.key, v_region, INT_LOCK_ALONE(request)) THEN
			v_answers := v_answers || '{"s": -4}';
			CONTINUE;
		END IF;
		IF q.uncertain THEN
			-- The owner is remembered even if it holds the key. A repeated request may have
			-- taken the key while the first one is still on its way.
			INSERT INTO INT_LOCK_GONE (CLIENT_ID, REGION, GONE_UNTIL)
				VALUES (q.owner, v_region, clock_timestamp() + INTERVAL '2 minutes')
				ON CONFLICT (CLIENT_ID, REGION) DO UPDATE SET GONE_UNTIL = EXCLUDED.GONE_UNTIL;
		END IF;
		SELECT EXPIRED_AFTER INTO v_until FROM INT_LOCK
			WHERE LOCK_KEY = q.key AND REGION = v_region AND CLIENT_ID = q.owner;
		v_held := FOUND AND v_until >= v_live;
		IF v_held AND q.keep > 0 THEN
			UPDATE INT_LOCK SET CLIENT_ID = v_kept, EXPIRED_AFTER = v_live + q.keep * INTERVAL '1 microsecond'
				WHERE LOCK_KEY = q.key AND REGION = v_region;
			UPDATE INT_LOCK_LEASE SET CLIENT_ID = v_kept WHERE LOCK_KEY = q.key AND REGION = v_region;
		ELSE
			DELETE FROM INT_LOCK WHERE LOCK_KEY = q.key AND REGION = v_region AND CLIENT_ID = q.owner;
		END IF;
		IF v_held THEN
			UPDATE INT_LOCK_LEASE SET TOKEN = GREATEST(TOKEN, q.token), LAST_USE = CURRENT_DATE
				WHERE LOCK_KEY = q.key AND REGION = v_region AND (TOKEN < q.token OR LAST_USE < CURRENT_DATE);
			v_status := 1;
		ELSE
			SELECT CASE CLIENT_ID WHEN v_kept THEN -2 ELSE -3 END INTO v_status FROM INT_LOCK
				WHERE LOCK_KEY = q.key AND REGION = v_region AND EXPIRED_AFTER >= v_live;
		END IF;
		v_answers := v_answers || jsonb_build_object('s', COALESCE(v_status, -2), 'held', v_held);
	END LOOP;
	RETURN jsonb_build_object('clock', v_clock, 'items', v_answers);
END $$;

-- Force: take the key from its holder, even from Java.
--
-- items    key, token (of the holding that is meant; 0: any, also Java's)
-- answers  held: somebody held the key until now; or s: 3 and what INT_LOCK_HOLDER says, if the
--          holder has another token and nothing was changed
CREATE OR REPLACE FUNCTION INT_LOCK_FORCE(request JSONB) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
	v_clock BIGINT := INT_LOCK_CLOCK(request);
	v_region VARCHAR(100) := request->>'region';
	v_live TIMESTAMP := (request->>'now')::TIMESTAMP - (request->>'base')::BIGINT * INTERVAL '1 microsecond';
	v_until TIMESTAMP;
	v_client CHAR(36);
	v_held BOOLEAN;
	v_answer JSONB;
	v_answers JSONB := '[]';
	q RECORD;
BEGIN
	FOR q IN SELECT * FROM jsonb_to_recordset(request->'items')
		AS x(key CHAR(36), token BIGINT)
	LOOP
		PERFORM 1 FROM INT_LOCK_LEASE WHERE LOCK_KEY = q.key AND REGION = v_region FOR UPDATE;
		IF q.token <> 0 THEN
			-- The row is locked, so that it is still the one that was compared when it is deleted.
			PERFORM 1 FROM INT_LOCK WHERE LOCK_KEY = q.key AND REGION = v_region FOR UPDATE;
			v_answer := INT_LOCK_HOLDER(q.key, v_region, v_live);
			IF (v_answer->>'token')::BIGINT IS DISTINCT FROM q.token THEN
				v_answers := v_answers || (v_answer || '{"s": 3}');
				CONTINUE;
			END IF;
		END IF;
		DELETE FROM INT_LOCK WHERE LOCK_KEY = q.key AND REGION = v_region
			RETURNING CLIENT_ID, EXPIRED_AFTER INTO v_client, v_until;
		v_held := FOUND AND v_until >= v_live;
		IF v_held THEN
			-- The old holder may pass the key on inside its client, with a token for each
			-- microsecond, until it is notified or stops trusting its TTL. The next holder's
			-- token has to be larger than all of these, so that resources refuse them. No TTL is
			-- longer than a day.
			UPDATE INT_LOCK_LEASE SET LAST_USE = CURRENT_DATE,
				TOKEN = GREATEST(TOKEN, INT_LOCK_CLOCK(request) + LEAST(INT_LOCK_LEFT(v_until, v_live), 86400000000))
				WHERE LOCK_KEY = q.key AND REGION = v_region AND CLIENT_ID = v_client AND CLOCKED;
		END IF;
		v_answers := v_answers || jsonb_build_object('held', v_held);
	END LOOP;
	RETURN jsonb_build_object('clock', v_clock, 'items', v_answers);
END $$;

-- Inspect: who holds the key.
--
-- items    key
-- answers  held, left, holder, token, client
CREATE OR REPLACE FUNCTION INT_LOCK_INSPECT(request JSONB) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
	v_live TIMESTAMP := (request->>'now')::TIMESTAMP - (request->>'base')::BIGINT * INTERVAL '1 microsecond';
	v_answers JSONB := '[]';
	q RECORD;
BEGIN
	FOR q IN SELECT * FROM jsonb_to_recordset(request->'items')
		AS x(key CHAR(36))
	LOOP
		v_answers := v_answers || INT_LOCK_HOLDER(q.key, (request->>'region')::VARCHAR(100), v_live);
	END LOOP;
	RETURN jsonb_build_object('clock', INT_LOCK_CLOCK(request), 'items', v_answers);
END $$;

-- List: the next held keys whose names have a prefix, of those that have a name.
--
-- items    after (the LOCK_KEY where the page before ended), prefix, size
-- answers  key, name and what INT_LOCK_HOLDER says
CREATE OR REPLACE FUNCTION INT_LOCK_LIST(request JSONB) RETURNS JSONB LANGUAGE plpgsql AS $$
DECLARE
	v_region VARCHAR(100) := request->>'region';
	v_live TIMESTAMP := (request->>'now')::TIMESTAMP - (request->>'base')::BIGINT * INTERVAL '1 microsecond';
	v_after CHAR(36) := request#>>'{items,0,after}';
	v_answers JSONB;
BEGIN
	SELECT COALESCE(jsonb_agg(x.found), '[]') INTO v_answers FROM (
		SELECT jsonb_build_object('key', l.LOCK_KEY, 'name', l.KEY_NAME) || INT_LOCK_HOLDER(l.LOCK_KEY, v_region, v_live) AS found
		FROM INT_LOCK_LEASE l JOIN INT_LOCK k ON k.LOCK_KEY = l.LOCK_KEY AND k.REGION = l.REGION
		WHERE l.REGION = v_region AND l.LOCK_KEY > v_after
			AND starts_with(l.KEY_NAME, request#>>'{items,0,prefix}') AND k.EXPIRED_AFTER >= v_live
		ORDER BY l.LOCK_KEY LIMIT (request#>>'{items,0,size}')::INT) x;
	RETURN jsonb_build_object('clock', INT_LOCK_CLOCK(request), 'items', v_answers);
END $$;
