// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;

/** Two participants of Curator's LeaderSelector, each with a client of its own. */
final class Election implements AutoCloseable {

	/** A term of the participant, which lasts until it is resigned. */
	private record Term(int participant, long began, BlockingQueue<Boolean> resigned) {
	}

	private final BlockingQueue<Term> terms = new LinkedBlockingQueue<>();
	private final List<CuratorFramework> clients;
	private final List<LeaderSelector> selectors;
	private Term term;

	Election(Clients clients, String key) throws Exception {
		this.clients = List.of(clients.curator(), clients.curator());
		this.selectors = List.of(selector(0, "/" + key), selector(1, "/" + key));
		this.selectors.forEach(LeaderSelector::start);
		this.term = this.terms.take();
	}

	private LeaderSelector selector(int participant, String path) {
		LeaderSelector selector = new LeaderSelector(this.clients.get(participant), path, new LeaderSelectorListenerAdapter() {

			@Override
			public void takeLeadership(CuratorFramework client) throws Exception {
				Term term = new Term(participant, System.nanoTime(), new LinkedBlockingQueue<>());
				Election.this.terms.add(term);
				term.resigned().take();
			}

		});
		selector.autoRequeue();
		return selector;
	}

	/** From the end of a term to the beginning of the other participant's. */
	Times pass(int passes, long restMilliseconds) throws Exception {
		Times times = new Times(passes);
		while (!times.full()) {
			while (this.selectors.get(0).getParticipants().size() < 2) {
				TimeUnit.MILLISECONDS.sleep(1);
			}
			TimeUnit.MILLISECONDS.sleep(restMilliseconds);
			long start = System.nanoTime();
			this.term.resigned().add(true);
			Term next = this.terms.take();
			if (next.participant() != this.term.participant()) {
				times.add(next.began() - start);
			}
			this.term = next;
		}
		return times;
	}

	@Override
	public void close() {
		this.term.resigned().add(true);
		this.selectors.forEach(LeaderSelector::close);
		this.clients.forEach(CuratorFramework::close);
	}

}
