// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.Lock;

/** A number in a file. */
final class Counter {

	private Counter() {
	}

	/** Raises the number so many times, in two steps that need the lock. */
	static void raise(Path file, int times, Lock lock) throws Exception {
		for (int i = 0; i < times; i++) {
			lock.lock();
			try {
				long n = Long.parseLong(Files.readString(file));
				Files.writeString(file, String.valueOf(n + 1));
			}
			finally {
				lock.unlock();
			}
		}
	}

}
