// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

import asynclock.LineProtocol.Opener;
import asynclock.LineProtocol.Player;

/** A player, and threads that nobody else plays with. */
final class Handle {

	private final String name;
	private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
	private volatile Player player;

	Handle(String name) {
		this.name = name;
	}

	/** Carries out a task on the thread of that name, after those it was given before. */
	void execute(String thread, Runnable task) {
		this.threads.computeIfAbsent(thread, t -> Executors.newSingleThreadExecutor(work -> new Thread(work, this.name + "/" + t)))
				.execute(task);
	}

	/** Carries out a task on a thread that is free, even if all others wait for locks. */
	void executeLast(Runnable task) {
		new Thread(task, this.name + "/last").start();
	}

	void open(Opener opener, String... args) throws Exception {
		this.player = opener.open(args);
	}

	Player player() {
		return this.player;
	}

	/**
	 * Ends the threads and the player. A thread that waits for a lock does not heed it,
	 * but fails when it next asks the server, without a connection. One that waits for
	 * another thread of the same player stays: Java has no way to end it.
	 */
	void close() throws Exception {
		this.threads.values().forEach(ExecutorService::shutdownNow);
		if (this.player != null) { // it may have failed to open
			this.player.close();
		}
	}

}
