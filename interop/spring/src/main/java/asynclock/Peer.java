// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;

import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * A RedisLockRegistry to be played with through standard input and output.
 *
 * <p>Arguments: host, port, registry key, mode (SPIN_LOCK or PUB_SUB_LOCK), TTL in
 * ms, and optionally "renew" for automatic renewal. The first line of output is
 * "ready". Each line of input is
 *
 * <pre>ID THREAD VERB KEY [ARGUMENT...]</pre>
 *
 * and is carried out on the thread of that name, because Java's locks belong to
 * threads. Fields are URL-encoded. The answer is one line, in the order in which
 * threads get done:
 *
 * <pre>ID ok [VALUE]
 * ID error CLASS MESSAGE</pre>
 *
 * <p>The program ends with its input.
 */
public final class Peer {

	private final RedisLockRegistry registry;
	private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

	private Peer(RedisLockRegistry registry) {
		this.registry = registry;
	}

	public static void main(String[] args) throws Exception {
		LettuceConnectionFactory connections = new LettuceConnectionFactory(args[0], Integer.parseInt(args[1]));
		connections.afterPropertiesSet();
		connections.start();
		RedisLockRegistry registry = new RedisLockRegistry(connections, decode(args[2]), Long.parseLong(args[4]));
		registry.setRedisLockType(RedisLockType.valueOf(args[3]));
		if (args.length > 5) {
			ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
			scheduler.initialize();
			registry.setRenewalTaskScheduler(scheduler);
		}
		new Peer(registry).serve();
		System.exit(0); // whatever still waits for a lock
	}

	private void serve() throws Exception {
		say("ready");
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			String[] fields = line.split(" ");
			this.threads.computeIfAbsent(fields[1], name -> Executors.newSingleThreadExecutor())
					.execute(() -> answer(fields));
		}
	}

	private void answer(String[] fields) {
		try {
			String value = perform(fields[2], decode(fields[3]), fields);
			say(fields[0] + " ok" + (value == null ? "" : " " + value));
		}
		catch (Throwable thrown) {
			say(fields[0] + " error " + thrown.getClass().getSimpleName() + " " + encode(String.valueOf(thrown.getMessage())));
		}
	}

	private String perform(String verb, String key, String[] fields) throws Exception {
		Lock lock = this.registry.obtain(key);
		switch (verb) {
			case "lock" -> lock.lock();
			case "unlock" -> lock.unlock();
			case "trylock" -> {
				return String.valueOf(lock.tryLock());
			}
			case "trylockfor" -> { // milliseconds
				return String.valueOf(lock.tryLock(Long.parseLong(fields[4]), TimeUnit.MILLISECONDS));
			}
			case "renew" -> this.registry.renewLock(key);
			case "idle" -> this.registry.setIdleBetweenTries(Duration.ofMillis(Long.parseLong(fields[4])));
			case "bump" -> bump(lock, Path.of(decode(fields[4])), Integer.parseInt(fields[5]));
			default -> throw new IllegalArgumentException(verb);
		}
		return null;
	}

	/** Raises the number in a file so many times, in two steps that need the lock. */
	private static void bump(Lock lock, Path file, int times) throws Exception {
		for (int i = 0; i < times; i++) {
			lock.lock();
			try {
				long n = Long.parseLong(Files.readString(file));
				Files.writeString(file, String.valueOf(n + 1));
			}
			finally {
				lock.unlock();
			}
		}
	}

	private static synchronized void say(String line) {
		System.out.println(line);
		System.out.flush();
	}

	private static String decode(String field) {
		return URLDecoder.decode(field, StandardCharsets.UTF_8);
	}

	private static String encode(String text) {
		return URLEncoder.encode(text, StandardCharsets.UTF_8);
	}

}
