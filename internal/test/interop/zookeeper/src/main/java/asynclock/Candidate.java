// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** A participant of Curator's LeaderSelector, for one term. */
final class Candidate {

	private final LeaderSelector selector;
	private final CountDownLatch elected = new CountDownLatch(1);
	private final CountDownLatch resigned = new CountDownLatch(1);

	Candidate(CuratorFramework curator, String path, String id) {
		this.selector = new LeaderSelector(curator, path, new LeaderSelectorListenerAdapter() {

			@Override
			public void takeLeadership(CuratorFramework client) throws Exception {
				Candidate.this.elected.countDown();
				Candidate.this.resigned.await();
			}

		});
		this.selector.setId(id);
	}

	void start() {
		this.selector.start();
	}

	void awaitTerm() throws InterruptedException {
		this.elected.await();
	}

	boolean leads() {
		return this.selector.hasLeadership();
	}

	void resign() {
		this.resigned.countDown();
	}

	/** The id of the leader. */
	String leader() throws Exception {
		return this.selector.getLeader().getId();
	}

	/** The ids of all candidates in their order, each in a line. */
	String all() throws Exception {
		return this.selector.getParticipants().stream().map(Participant::getId).collect(Collectors.joining("\n"));
	}

	/** Ends the candidature. Nothing happens if it has not begun, or has ended. */
	void close() {
		resign();
		try {
			this.selector.close();
		}
		catch (IllegalStateException ignored) {
			// it was not started
		}
	}

}
