// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.time.Duration;
import java.util.concurrent.locks.Lock;

import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** A RedisLockRegistry. */
final class RedisRegistry implements Registry {

	private final LettuceConnectionFactory connections;
	private final ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
	private final RedisLockRegistry registry;

	/**
	 * @param args host, port, registry key, mode (SPIN_LOCK or PUB_SUB_LOCK), TTL in ms,
	 * and optionally "renew" for automatic renewal
	 */
	RedisRegistry(String... args) {
		this.connections = new LettuceConnectionFactory(args[0], Integer.parseInt(args[1]));
		this.connections.afterPropertiesSet();
		this.connections.start();
		this.registry = new RedisLockRegistry(this.connections, args[2], Long.parseLong(args[4]));
		this.registry.setRedisLockType(RedisLockType.valueOf(args[3]));
		if (args.length > 5) {
			this.scheduler.initialize();
			this.registry.setRenewalTaskScheduler(this.scheduler);
		}
	}

	@Override
	public Lock obtain(String key) {
		return this.registry.obtain(key);
	}

	@Override
	public void renewLock(String key) {
		this.registry.renewLock(key);
	}

	@Override
	public void setIdleBetweenTries(Duration idle) {
		this.registry.setIdleBetweenTries(idle);
	}

	@Override
	public void close() {
		this.scheduler.shutdown();
		this.registry.destroy();
		this.connections.destroy();
	}

}
