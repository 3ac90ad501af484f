// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.time.Duration;
import java.util.concurrent.locks.Lock;

import com.zaxxer.hikari.HikariDataSource;

import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.jdbc.lock.LockRepository;
import org.springframework.jdbc.support.JdbcTransactionManager;

/** A JdbcLockRegistry, made as Spring makes one, and with the pool of Spring Boot. */
final class JdbcRegistry implements Registry {

	private final HikariDataSource source = new HikariDataSource();
	private final JdbcLockRegistry registry;

	/** @param args JDBC URL, user, password, table prefix, region, TTL in ms */
	JdbcRegistry(String... args) throws ReflectiveOperationException {
		this.source.setJdbcUrl(args[0]);
		this.source.setUsername(args[1]);
		this.source.setPassword(args[2]);
		this.source.setMaximumPoolSize(4); // of many at once, and none has more threads
		this.source.setMinimumIdle(1); // most need no second connection, and each costs the server a process
		DefaultLockRepository repository = new DefaultLockRepository(this.source);
		repository.setPrefix(args[3]);
		repository.setRegion(args[4]);
		repository.setTransactionManager(new JdbcTransactionManager(this.source));
		this.registry = registry(repository, Long.parseLong(args[5]));
		repository.afterPropertiesSet();
		repository.afterSingletonsInstantiated();
		repository.start();
	}

	/** The TTL is the registry's since 7.0, and the repository's before. */
	private static JdbcLockRegistry registry(DefaultLockRepository repository, long ttl)
			throws ReflectiveOperationException {
		try {
			return JdbcLockRegistry.class.getConstructor(LockRepository.class, Duration.class)
					.newInstance(repository, Duration.ofMillis(ttl));
		}
		catch (NoSuchMethodException before7) {
			DefaultLockRepository.class.getMethod("setTimeToLive", int.class).invoke(repository, (int) ttl);
			return new JdbcLockRegistry(repository);
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
		this.source.close();
	}

}
