// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** What is timed. Each workload does what that of the same name in bench does in Go. */
final class Workloads {

	/** More than there can be in a round. */
	private static final int MOST_WAITS = 1_000_000;

	private Workloads() {
	}

	/** One thread, nobody else. */
	static Times alone(Recipe recipe, int operations) throws Exception {
		Times times = new Times(operations);
		while (!times.full()) {
			long start = System.nanoTime();
			recipe.give(recipe.take());
			times.add(System.nanoTime() - start);
		}
		return times;
	}

	/** Threads of one client, as fast as they can. Returns operations per second. */
	static double crowd(Recipe recipe, int threads, long milliseconds) throws Exception {
		AtomicLong count = new AtomicLong();
		long start = System.nanoTime();
		long end = start + TimeUnit.MILLISECONDS.toNanos(milliseconds);
		together(threads, () -> {
			long own = 0;
			while (System.nanoTime() < end) {
				recipe.give(recipe.take());
				own++;
			}
			count.addAndGet(own);
			return null;
		});
		return count.get() / ((System.nanoTime() - start) / 1e9);
	}

	/**
	 * Clients that pass the one thing around, each of which holds it for a while. The first takes, in which everybody
	 * comes to wait, do not count.
	 */
	static Times handoffs(List<Recipe> clients, int passes, long holdMicroseconds) throws Exception {
		Times times = new Times(passes);
		AtomicLong given = new AtomicLong();
		AtomicLong takes = new AtomicLong();
		List<Callable<Void>> parts = new ArrayList<>();
		for (Recipe client : clients) {
			parts.add(() -> {
				for (boolean more = true; more;) {
					Object taken = client.take();
					long now = System.nanoTime();
					long since = given.get();
					if (takes.incrementAndGet() > clients.size()) {
						times.add(now - since);
					}
					more = !times.full();
					if (more && holdMicroseconds > 0) {
						TimeUnit.MICROSECONDS.sleep(holdMicroseconds);
					}
					given.set(System.nanoTime());
					client.give(taken);
				}
				return null;
			});
		}
		all(parts);
		return times;
	}

	/** How long each client waits each time, as fast as they can, until the time is up. */
	static Times waits(List<Recipe> clients, long milliseconds, long holdMicroseconds) throws Exception {
		long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
		Times times = new Times(MOST_WAITS);
		List<Callable<Void>> parts = new ArrayList<>();
		for (Recipe client : clients) {
			parts.add(() -> {
				for (long asked; (asked = System.nanoTime()) < end;) {
					Object taken = client.take();
					times.add(System.nanoTime() - asked);
					TimeUnit.MICROSECONDS.sleep(holdMicroseconds);
					client.give(taken);
				}
				return null;
			});
		}
		all(parts);
		return times;
	}

	/** From the end of a writer until the last of all readers reads. */
	static Times readers(List<Recipe> readers, Recipe writer, int passes, long settle) throws Exception {
		Times times = new Times(passes);
		while (!times.full()) {
			Object taken = writer.take();
			CountDownLatch reading = new CountDownLatch(readers.size());
			ExecutorService threads = Executors.newFixedThreadPool(readers.size());
			List<Future<Void>> ends = new ArrayList<>();
			for (Recipe reader : readers) {
				ends.add(threads.submit(() -> {
					Object read = reader.take();
					reading.countDown();
					reading.await();
					reader.give(read);
					return null;
				}));
			}
			TimeUnit.MILLISECONDS.sleep(settle);
			long start = System.nanoTime();
			writer.give(taken);
			reading.await();
			times.add(System.nanoTime() - start);
			for (Future<Void> end : ends) {
				end.get();
			}
			threads.shutdown();
		}
		return times;
	}

	private static void together(int threads, Callable<Void> part) throws Exception {
		List<Callable<Void>> parts = new ArrayList<>();
		for (int i = 0; i < threads; i++) {
			parts.add(part);
		}
		all(parts);
	}

	/** Carries out all parts at the same time, and throws what one of them has thrown. */
	private static void all(List<Callable<Void>> parts) throws Exception {
		ExecutorService threads = Executors.newFixedThreadPool(parts.size());
		try {
			for (Future<Void> end : threads.invokeAll(parts)) {
				end.get();
			}
		}
		finally {
			threads.shutdownNow();
		}
	}

}
