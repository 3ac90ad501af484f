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
import java.util.stream.Stream;

/**
 * A lock registry to be played with through standard input and output.
 *
 * <p>Arguments, URL-encoded: "redis" or "jdbc", and then those of {@link RedisRegistry}
 * or {@link JdbcRegistry}. The first line of output is "ready". Each line of input is
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

	private final Registry registry;
	private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

	private Peer(Registry registry) {
		this.registry = registry;
	}

	public static void main(String[] args) throws Exception {
		String[] rest = Stream.of(args).skip(1).map(Peer::decode).toArray(String[]::new);
		Registry registry = switch (args[0]) {
			case "redis" -> new RedisRegistry(rest);
			case "jdbc" -> new JdbcRegistry(rest);
			default -> throw new IllegalArgumentException(args[0]);
		};
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
