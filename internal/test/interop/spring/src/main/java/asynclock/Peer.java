// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;

/**
 * Lock registries to be played with, many in one program.
 *
 * <p>Each is opened with "redis" or "jdbc", and then the arguments of
 * {@link RedisRegistry} or {@link JdbcRegistry}. {@link LineProtocol} says how it is
 * spoken to.
 */
public final class Peer implements LineProtocol.Player {

	private final Registry registry;

	private Peer(Registry registry) {
		this.registry = registry;
	}

	public static void main(String[] args) throws Exception {
		LineProtocol.serve(Peer::open);
	}

	private static Peer open(String... args) throws Exception {
		String[] rest = Arrays.copyOfRange(args, 1, args.length);
		return new Peer(switch (args[0]) {
			case "redis" -> new RedisRegistry(rest);
			case "jdbc" -> new JdbcRegistry(rest);
			default -> throw new IllegalArgumentException(args[0]);
		});
	}

	@Override
	public void close() {
		this.registry.close();
	}

	@Override
	public String perform(String verb, String key, String... args) throws Exception {
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
