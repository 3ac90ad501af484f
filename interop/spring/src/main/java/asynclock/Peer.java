// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;

/**
 * A lock registry to be played with.
 *
 * <p>Arguments: "redis" or "jdbc", and then those of {@link RedisRegistry} or
 * {@link JdbcRegistry}. {@link LineProtocol} says how it is spoken to.
 */
public final class Peer {

	private final Registry registry;

	private Peer(Registry registry) {
		this.registry = registry;
	}

	public static void main(String[] args) throws Exception {
		String[] rest = LineProtocol.decodeFrom(1, args);
		Registry registry = switch (args[0]) {
			case "redis" -> new RedisRegistry(rest);
			case "jdbc" -> new JdbcRegistry(rest);
			default -> throw new IllegalArgumentException(args[0]);
		};
		LineProtocol.serve(new Peer(registry)::perform);
	}

	private String perform(String verb, String key, String... args) throws Exception {
		Lock lock = this.registry.obtain(key);
		switch (verb) {
			case "lock" -> lock.lock();
			case "unlock" -> lock.unlock();
			case "trylock" -> {
				return String.valueOf(lock.tryLock());
			}
			case "trylockfor" -> { // milliseconds
				return String.valueOf(lock.tryLock(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
			}
			case "renew" -> this.registry.renewLock(key);
			case "idle" -> this.registry.setIdleBetweenTries(Duration.ofMillis(Long.parseLong(args[0])));
			case "bump" -> Counter.raise(Path.of(args[0]), Integer.parseInt(args[1]), lock);
			default -> throw new IllegalArgumentException(verb);
		}
		return null;
	}

}
