// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/**
 * How a peer is played with: through standard input and output.
 *
 * <p>The first line of output is "ready". Each line of input is
 *
 * <pre>ID HANDLE THREAD VERB [ARGUMENT...]</pre>
 *
 * and is carried out on the handle's thread of that name, because Java's locks belong
 * to threads. The arguments are URL-encoded. The answer is one line, in the order in
 * which threads get done:
 *
 * <pre>ID ok [VALUE]
 * ID error CLASS MESSAGE</pre>
 *
 * Value and message are URL-encoded, too.
 *
 * <p>The verb "open" makes a {@link Player} of its arguments under a handle that is new.
 * Those of other verbs begin with a key, and are for that player. The verb "close"
 * closes it with its threads, and needs none of these. The program ends with its input.
 */
final class LineProtocol {

	private LineProtocol() {
	}

	/** What does as it is told, for one test. */
	interface Player extends AutoCloseable {

		/** Carries out a command, whose value may be null for none. */
		String perform(String verb, String key, String... args) throws Exception;

	}

	/** Makes players. */
	interface Opener {

		Player open(String... args) throws Exception;

	}

	private interface Task {

		String perform() throws Exception;

	}

	/** Carries out commands until there are no more, and ends the program. */
	static void serve(Opener opener) throws Exception {
		Map<String, Handle> handles = new HashMap<>();
		say("ready");
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			String[] fields = line.split(" ");
			String id = fields[0];
			String thread = fields[2];
			String verb = fields[3];
			Handle handle = handles.computeIfAbsent(fields[1], Handle::new);
			switch (verb) {
				case "open" -> handle.execute(thread, () -> answer(id, () -> {
					handle.open(opener, decodeFrom(4, fields));
					return null;
				}));
				case "close" -> {
					handles.remove(fields[1]);
					handle.executeLast(() -> answer(id, () -> {
						handle.close();
						return null;
					}));
				}
				default -> handle.execute(thread, () -> answer(id,
						() -> handle.player().perform(verb, decode(fields[4]), decodeFrom(5, fields))));
			}
		}
		System.exit(0); // whatever still waits for a lock
	}

	private static void answer(String id, Task task) {
		try {
			String value = task.perform();
			say(id + " ok" + (value == null ? "" : " " + encode(value)));
		}
		catch (Throwable thrown) {
			say(id + " error " + thrown.getClass().getSimpleName() + " " + encode(String.valueOf(thrown.getMessage())));
		}
	}

	private static synchronized void say(String line) {
		System.out.println(line);
		System.out.flush();
	}

	/** Decodes the fields that begin with the first-th, counted from 0. */
	private static String[] decodeFrom(int first, String... fields) {
		return Stream.of(fields).skip(first).map(LineProtocol::decode).toArray(String[]::new);
	}

	private static String decode(String field) {
		return URLDecoder.decode(field, StandardCharsets.UTF_8);
	}

	private static String encode(String text) {
		return URLEncoder.encode(text, StandardCharsets.UTF_8);
	}

}
