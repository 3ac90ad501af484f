// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

import org.springframework.integration.zookeeper.lock.ZookeeperLockRegistry;

/**
 * A ZookeeperLockRegistry and Curator's InterProcessMutex, to be played with
 * through standard input and output.
 *
 * <p>Arguments: servers, root, session timeout in ms. The first line of output is
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

	private final CuratorFramework curator;
	private final String root;
	private final ZookeeperLockRegistry registry;
	private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
	private final Map<String, Integer> revocations = new ConcurrentHashMap<>();
	private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

	private Peer(CuratorFramework curator, String root) {
		this.curator = curator;
		this.root = root;
		this.registry = new ZookeeperLockRegistry(curator, root);
	}

	public static void main(String[] args) throws Exception {
		int timeout = Integer.parseInt(args[2]);
		CuratorFramework curator = CuratorFrameworkFactory.newClient(args[0], timeout, 15_000, new ExponentialBackoffRetry(50, 10));
		curator.start();
		curator.blockUntilConnected();
		new Peer(curator, decode(args[1])).serve();
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
			say(fields[0] + " ok" + (value == null ? "" : " " + encode(value)));
		}
		catch (Throwable thrown) {
			say(fields[0] + " error " + thrown.getClass().getSimpleName() + " " + encode(String.valueOf(thrown.getMessage())));
		}
	}

	private String perform(String verb, String key, String[] fields) throws Exception {
		switch (verb) {
			// The registry.
			case "lock" -> this.registry.obtain(key).lock();
			case "unlock" -> this.registry.obtain(key).unlock();
			case "trylockfor" -> { // milliseconds
				return String.valueOf(this.registry.obtain(key).tryLock(Long.parseLong(fields[4]), TimeUnit.MILLISECONDS));
			}
			case "bump" -> bump(key, Path.of(decode(fields[4])), Integer.parseInt(fields[5]));

			// Curator.
			case "acquire" -> mutex(key).acquire();
			case "acquirefor" -> { // milliseconds
				return String.valueOf(mutex(key).acquire(Long.parseLong(fields[4]), TimeUnit.MILLISECONDS));
			}
			case "release" -> mutex(key).release();
			case "participants" -> {
				return String.join(" ", mutex(key).getParticipantNodes());
			}
			case "revocable" -> mutex(key).makeRevocable(mutex -> this.revocations.merge(key, 1, Integer::sum));
			case "revocations" -> {
				return String.valueOf(this.revocations.getOrDefault(key, 0));
			}
			case "revoke" -> Revoker.attemptRevoke(this.curator, decode(fields[4]));
			case "expire" -> this.curator.getZookeeperClient().getZooKeeper().getTestable().injectSessionExpiration();
			default -> throw new IllegalArgumentException(verb);
		}
		return null;
	}

	private InterProcessMutex mutex(String key) {
		return this.mutexes.computeIfAbsent(key, k -> new InterProcessMutex(this.curator, this.root + "/" + k));
	}

	/** Raises the number in a file so many times, in two steps that need the lock. */
	private void bump(String key, Path file, int times) throws Exception {
		for (int i = 0; i < times; i++) {
			this.registry.obtain(key).lock();
			try {
				long n = Long.parseLong(Files.readString(file));
				Files.writeString(file, String.valueOf(n + 1));
			}
			finally {
				this.registry.obtain(key).unlock();
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
