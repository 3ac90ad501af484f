// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

import org.springframework.integration.zookeeper.lock.ZookeeperLockRegistry;

/**
 * Many a ZookeeperLockRegistry and Curator's recipes, to be played with.
 *
 * <p>Each is opened with servers, root, session timeout in ms. {@link LineProtocol} says
 * how it is spoken to.
 */
public final class Peer implements LineProtocol.Player {

	private final CuratorFramework curator;
	private final String root;
	private final ZookeeperLockRegistry registry;
	private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
	private final Map<String, InterProcessReadWriteLock> readWriteLocks = new ConcurrentHashMap<>();
	private final Map<String, Candidate> candidates = new ConcurrentHashMap<>();

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
		this.candidates.values().forEach(Candidate::close);
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
			// Curator's readers and writers.
			case "read" -> readWriteLock(key).readLock().acquire();
			case "readfor" -> { // milliseconds
				return String.valueOf(readWriteLock(key).readLock().acquire(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
			}
			case "endread" -> readWriteLock(key).readLock().release();
			case "write" -> readWriteLock(key).writeLock().acquire();
			case "writefor" -> { // milliseconds
				return String.valueOf(readWriteLock(key).writeLock().acquire(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
			}
			case "endwrite" -> readWriteLock(key).writeLock().release();
			case "readers" -> {
				return String.join(" ", readWriteLock(key).readLock().getParticipantNodes());
			}
			case "writers" -> {
				return String.join(" ", readWriteLock(key).writeLock().getParticipantNodes());
			}

			// Curator's elections.
			case "campaign" -> candidate(key, args[0]).start();
			case "awaitterm" -> candidate(key, args[0]).awaitTerm();
			case "leads" -> {
				return String.valueOf(candidate(key, args[0]).leads());
			}
			case "resign" -> candidate(key, args[0]).resign();
			case "leader" -> {
				return candidate(key, args[0]).leader();
			}
			case "candidates" -> {
				return candidate(key, args[0]).all();
			}

			case "expire" -> this.curator.getZookeeperClient().getZooKeeper().getTestable().injectSessionExpiration();
			default -> throw new IllegalArgumentException(verb);
		}
		return null;
	}

	private InterProcessMutex mutex(String key) {
		return this.mutexes.computeIfAbsent(key, k -> new InterProcessMutex(this.curator, this.root + "/" + k));
	}

	private InterProcessReadWriteLock readWriteLock(String key) {
		return this.readWriteLocks.computeIfAbsent(key, k -> new InterProcessReadWriteLock(this.curator, this.root + "/" + k));
	}

	private Candidate candidate(String key, String id) {
		return this.candidates.computeIfAbsent(key + " " + id, k -> new Candidate(this.curator, this.root + "/" + key, id));
	}

}
