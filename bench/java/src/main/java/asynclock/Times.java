// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.Arrays;

/** Times of operations, in the order in which they ended. */
final class Times {

	private final long[] nanos;
	private int count;

	Times(int size) {
		this.nanos = new long[size];
	}

	synchronized void add(long nanos) {
		if (!full()) {
			this.nanos[this.count++] = nanos;
		}
	}

	synchronized boolean full() {
		return this.count == this.nanos.length;
	}

	/** All of them in microseconds, separated by spaces: who asked knows what to make of them. */
	@Override
	public synchronized String toString() {
		StringBuilder text = new StringBuilder();
		Arrays.stream(this.nanos, 0, this.count).forEach(n -> text.append(n / 1000.0).append(' '));
		return text.toString().trim();
	}

}
