// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.time.Duration;
import java.util.concurrent.locks.Lock;

/** What the peer does with a registry of any kind and release. */
interface Registry {

	Lock obtain(String key);

	void renewLock(String key);

	void setIdleBetweenTries(Duration idle);

	/** Closes what was made for the registry. The locks that it holds it still holds. */
	void close();

}
