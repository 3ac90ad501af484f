// SPDX-License-Identifier: Apache-2.0

package asynclock;

/** Something that is taken and given back, by a client of its own. */
interface Recipe extends AutoCloseable {

	/** Waits for it. What is returned goes to {@link #give}, on the same thread. */
	Object take() throws Exception;

	void give(Object taken) throws Exception;

	@Override
	void close();

}
