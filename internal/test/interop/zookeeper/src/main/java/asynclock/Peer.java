// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

import org.springframework.integration.zookeeper.lock.ZookeeperLockRegistry;

/**
 * Many a ZookeeperLockRegistry and Curator's InterProcessMutex, to be played with.
 *
 * <p>Each is opened with servers, root, session timeout in ms. {@link LineProtocol} says
 * how it is spoken to.
 */
public final class Peer implements LineProtocol.Player {

	private final CuratorFramework curator;
	private final String root;
	private final ZookeeperLockRegistry registry;
	private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();

	private Peer(CuratorFramework curator, String root) {
		this.curator = curator;
		this.root = root;
		this.registry = new ZookeeperLockRegistry(curator, root);
	}

	public static void main(String[] args) throws Exception {
		LineProtocol.serve(Peer::open);
	}

	private static Peer open(String... args) throws Exception {
		int timeout = Integer.parseInt(args[2]);
		CuratorFramework curator = CuratorFrameworkFactory.newClient(args[0], timeout, 15_000, new ExponentialBackoffRetry(50, 10));
		curator.start();
		curator.blockUntilConnected();
		return new Peer(curator, args[1]);
	}

	@Override
	public void close() {
		this.registry.destroy();
		this.curator.close();
	}

	@Override
	public String perform(String verb, String key, String... args) throws Exception {
		switch (verb) {
			// The registry.
			case "lock" -> this.registry.obtain(key).lock();
			case "unlock" -> this.registry.obtain(key).unlock();
			case "trylockfor" -> { // milliseconds
				return String.valueOf(this.registry.obtain(key).tryLock(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
			}
			case "bump" -> Counter.raise(Path.of(args[0]), Integer.parseInt(args[1]), this.registry.obtain(key));

			// Curator.
			case "acquire" -> mutex(key).acquire();
			case "acquirefor" -> { // milliseconds
				return String.valueOf(mutex(key).acquire(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
			}
			case "release" -> mutex(key).release();
			case "participants" -> {
				return String.join(" ", mutex(key).getParticipantNodes());
			}
			case "revoke" -> Revoker.attemptRevoke(this.curator, args[0]);
			case "expire" -> this.curator.getZookeeperClient().getZooKeeper().getTestable().injectSessionExpiration();
			default -> throw new IllegalArgumentException(verb);
		}
		return null;
	}

	private InterProcessMutex mutex(String key) {
		return this.mutexes.computeIfAbsent(key, k -> new InterProcessMutex(this.curator, this.root + "/" + k));
	}

}
