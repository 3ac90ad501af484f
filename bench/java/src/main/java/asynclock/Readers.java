// SPDX-License-Identifier: Apache-2.0

package asynclock;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Many readers of one key, of one client of Redisson's, which tells readers apart by their threads' ids. */
final class Readers implements AutoCloseable {

	private final RedissonClient client;
	private final RLock lock;

	Readers(Clients clients, String key) {
		this.client = clients.redisson();
		this.lock = this.client.getReadWriteLock(key).readLock();
	}

	void take(long from, long to) throws Exception {
		for (long id = from; id < to; id++) {
			this.lock.lockAsync(id).toCompletableFuture().get();
		}
	}

	void give(long from, long to) throws Exception {
		for (long id = from; id < to; id++) {
			this.lock.unlockAsync(id).toCompletableFuture().get();
		}
	}

	@Override
	public void close() {
		this.client.shutdown();
	}

}
