// SPDX-License-Identifier: Apache-2.0

package asynclock;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;

/**
 * How a peer is played with: through standard input and output.
 *
 * <p>The first line of output is "ready". Each line of input is
 *
 * <pre>ID THREAD VERB KEY [ARGUMENT...]</pre>
 *
 * and is carried out on the thread of that name, because Java's locks belong to
 * threads. The key and the arguments are URL-encoded. The answer is one line, in the
 * order in which threads get done:
 *
 * <pre>ID ok [VALUE]
 * ID error CLASS MESSAGE</pre>
 *
 * Value and message are URL-encoded, too, and so are the arguments of a peer's program.
 * The program ends with its input.
 */
final class LineProtocol {

	private LineProtocol() {
	}

	/** What a peer does. */
	interface Player {

		/** Carries out a command, whose value may be null for none. */
		String perform(String verb, String key, String... args) throws Exception;

	}

	/** Has a player carry out commands until there are no more, and ends the program. */
	static void serve(Player player) throws Exception {
		Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
		say("ready");
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			String[] fields = line.split(" ");
			threads.computeIfAbsent(fields[1], name -> Executors.newSingleThreadExecutor())
					.execute(() -> answer(player, fields));
		}
		System.exit(0); // whatever still waits for a lock
	}

	private static void answer(Player player, String... fields) {
		try {
			String value = player.perform(fields[2], decode(fields[3]), decodeFrom(4, fields));
			say(fields[0] + " ok" + (value == null ? "" : " " + encode(value)));
		}
		catch (Throwable thrown) {
			say(fields[0] + " error " + thrown.getClass().getSimpleName() + " " + encode(String.valueOf(thrown.getMessage())));
		}
	}

	private static synchronized void say(String line) {
		System.out.println(line);
		System.out.flush();
	}

	/** Decodes the fields that begin with the first-th, counted from 0. */
	static String[] decodeFrom(int first, String... fields) {
		return Stream.of(fields).skip(first).map(LineProtocol::decode).toArray(String[]::new);
	}

	private static String decode(String field) {
		return URLDecoder.decode(field, StandardCharsets.UTF_8);
	}

	private static String encode(String text) {
		return URLEncoder.encode(text, StandardCharsets.UTF_8);
	}

}
