// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** The recipes by name. */
final class Recipes {

	/** How many permits a semaphore has. */
	static final int PERMITS = 10;

	/** The longest that a permit of Redisson's lasts; it is not renewed. */
	private static final int SECONDS = 600;

	private Recipes() {
	}

	/** Makes a recipe with a client of its own. Names ending in a number want so many keys. */
	static Recipe open(Clients clients, String name, String key) throws Exception {
		return name.startsWith("redisson ") ? redisson(clients.redisson(), name, key) : curator(clients.curator(), name, key);
	}

	private static Recipe redisson(RedissonClient client, String name, String key) throws Exception {
		return switch (name) {
			case "redisson read" -> locking(client, client.getReadWriteLock(key).readLock());
			case "redisson write" -> locking(client, client.getReadWriteLock(key).writeLock());
			case "redisson several 3" -> locking(client, client.getMultiLock(locks(client, key, 3)));
			case "redisson several 10" -> locking(client, client.getMultiLock(locks(client, key, 10)));
			case "redisson several 3 of 20" -> {
				RLock[] all = locks(client, key, 20);
				yield of(client::shutdown, () -> {
					RLock some = client.getMultiLock(some(all, 3));
					some.lock();
					return some;
				}, taken -> ((RLock) taken).unlock());
			}
			case "redisson semaphore" -> {
				RSemaphore semaphore = client.getSemaphore(key);
				semaphore.trySetPermits(PERMITS);
				yield of(client::shutdown, () -> {
					semaphore.acquire();
					return null;
				}, taken -> semaphore.release());
			}
			case "redisson permits" -> {
				RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(key);
				semaphore.trySetPermits(PERMITS);
				yield of(client::shutdown, () -> semaphore.acquire(SECONDS, TimeUnit.SECONDS), taken -> semaphore.release((String) taken));
			}
			default -> throw new IllegalArgumentException(name);
		};
	}

	private static RLock[] locks(RedissonClient client, String key, int n) {
		return IntStream.range(0, n).mapToObj(i -> client.getLock(key + ":" + i)).toArray(RLock[]::new);
	}

	/** Some of them at random, in their order. */
	private static RLock[] some(RLock[] all, int n) {
		return ThreadLocalRandom.current().ints(0, all.length).distinct().limit(n).sorted().mapToObj(i -> all[i]).toArray(RLock[]::new);
	}

	private static Recipe locking(RedissonClient client, RLock lock) {
		return of(client::shutdown, () -> {
			lock.lock();
			return null;
		}, taken -> lock.unlock());
	}

	private static Recipe curator(CuratorFramework client, String name, String key) throws Exception {
		String path = "/" + key;
		return switch (name) {
			case "curator read" -> locking(client, new InterProcessReadWriteLock(client, path).readLock());
			case "curator write" -> locking(client, new InterProcessReadWriteLock(client, path).writeLock());
			case "curator several 3" -> locking(client, new InterProcessMultiLock(mutexes(client, path, 3)));
			case "curator several 10" -> locking(client, new InterProcessMultiLock(mutexes(client, path, 10)));
			case "curator semaphore" -> {
				InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, PERMITS);
				yield of(client::close, semaphore::acquire, taken -> semaphore.returnLease((Lease) taken));
			}
			default -> throw new IllegalArgumentException(name);
		};
	}

	private static List<InterProcessLock> mutexes(CuratorFramework client, String path, int n) {
		return IntStream.range(0, n).<InterProcessLock>mapToObj(i -> new InterProcessMutex(client, path + "-" + i)).toList();
	}

	private static Recipe locking(CuratorFramework client, InterProcessLock lock) {
		return of(client::close, () -> {
			lock.acquire();
			return null;
		}, taken -> lock.release());
	}

	private interface Taking {

		Object take() throws Exception;

	}

	private interface Giving {

		void give(Object taken) throws Exception;

	}

	private static Recipe of(Runnable closing, Taking taking, Giving giving) {
		return new Recipe() {

			@Override
			public Object take() throws Exception {
				return taking.take();
			}

			@Override
			public void give(Object taken) throws Exception {
				giving.give(taken);
			}

			@Override
			public void close() {
				closing.run();
			}

		};
	}

}
