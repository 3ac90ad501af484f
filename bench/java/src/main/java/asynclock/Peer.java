// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.util.ArrayList;
import java.util.List;

/**
 * One contestant: a recipe of Redisson's or Curator's, whose operations are timed here.
 *
 * <p>Each is opened with the addresses of Redis and ZooKeeper, and the name of the recipe.
 * {@link LineProtocol} says how it is spoken to. Times are in microseconds.
 */
public final class Peer implements LineProtocol.Player {

	private final Clients clients;
	private final String recipe;
	private final List<Recipe> opened = new ArrayList<>();
	private Recipe writer;
	private Readers readers;
	private Election election;

	private Peer(Clients clients, String recipe) {
		this.clients = clients;
		this.recipe = recipe;
	}

	public static void main(String[] args) throws Exception {
		LineProtocol.serve(given -> new Peer(new Clients(given[0], given[1]), given[2]));
	}

	@Override
	public void close() {
		this.opened.forEach(Recipe::close);
		if (this.writer != null) {
			this.writer.close();
		}
		if (this.readers != null) {
			this.readers.close();
		}
		if (this.election != null) {
			this.election.close();
		}
		this.clients.close();
	}

	@Override
	public String perform(String verb, String key, String... args) throws Exception {
		long[] numbers = new long[args.length];
		for (int i = 0; i < args.length; i++) {
			numbers[i] = Long.parseLong(args[i]);
		}
		switch (verb) {
			case "hold" -> { // how many
				for (int i = 0; i < numbers[0]; i++) {
					opened(key, 1).get(0).take();
				}
			}
			case "alone" -> { // operations
				return Workloads.alone(opened(key, 1).get(0), (int) numbers[0]).toString();
			}
			case "crowd" -> { // threads, milliseconds
				return String.valueOf(Workloads.crowd(opened(key, 1).get(0), (int) numbers[0], numbers[1]));
			}
			case "handoffs" -> { // clients, passes, microseconds
				return Workloads.handoffs(opened(key, (int) numbers[0]), (int) numbers[1], numbers[2]).toString();
			}
			case "waits" -> { // clients, milliseconds, microseconds
				return Workloads.waits(opened(key, (int) numbers[0]), numbers[1], numbers[2]).toString();
			}
			case "readers" -> { // clients, passes, milliseconds until all of them wait
				if (this.writer == null) {
					this.writer = Recipes.open(this.clients, this.recipe.replace(" read", " write"), key);
				}
				return Workloads.readers(opened(key, (int) numbers[0]), this.writer, (int) numbers[1], numbers[2]).toString();
			}
			case "read" -> readers(key).take(numbers[0], numbers[1]);
			case "endread" -> readers(key).give(numbers[0], numbers[1]);
			case "terms" -> { // passes, milliseconds of rest
				if (this.election == null) {
					this.election = new Election(this.clients, key);
				}
				return this.election.pass((int) numbers[0], numbers[1]).toString();
			}
			default -> throw new IllegalArgumentException(verb);
		}
		return null;
	}

	/** The first so many clients with the recipe. */
	private List<Recipe> opened(String key, int n) throws Exception {
		while (this.opened.size() < n) {
			this.opened.add(Recipes.open(this.clients, this.recipe, key));
		}
		return this.opened.subList(0, n);
	}

	private Readers readers(String key) {
		if (this.readers == null) {
			this.readers = new Readers(this.clients, key);
		}
		return this.readers;
	}

}
