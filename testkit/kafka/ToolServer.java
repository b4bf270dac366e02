import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * Runs the tools that it reads from standard input, one after the other, in one JVM.
 *
 * <p>A request: the tool's standard input, the number of texts and each text, which are the main class and its
 * arguments. The answer: the exit code, standard output, standard error, and the number of clients that the tool
 * left open, since they end with a JVM of its own. A text is its length in four bytes, and bytes.
 */
public final class ToolServer {
    private static final int FAILED = 1;

    /** Kafka's class by which tools end: Kafka 4.4 moved it. */
    private static final List<String> EXIT =
            List.of("org.apache.kafka.common.utils.internals.Exit", "org.apache.kafka.common.utils.Exit");

    /** How Kafka's clients name their threads, which live until they are closed. */
    private static final List<String> CLIENTS = List.of("kafka-", "consumer_background_thread");

    /** Thrown where a JVM would end; tools that catch everything may end once more, which does not count. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1;

        Ended() {
            super("the tool ended", null, false, false);
        }
    }

    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    private static Answer ended;

    /** What the tool wants done when its JVM ends: the console producer sends there what it has not sent yet. */
    private static final List<Runnable> HOOKS = new ArrayList<>();

    private record Answer(int code, byte[] out, byte[] err) {}

    private ToolServer() {}

    /** Serves until standard input ends. */
    public static void main(String[] none) throws IOException {
        DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers =
                new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        // before a logger or Scala's console takes hold of them
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        onExit("setExitProcedure", (proxy, method, words) -> end((int) words[0]));
        onExit("setHaltProcedure", (proxy, method, words) -> end((int) words[0]));
        onExit("setShutdownHookAdder", (proxy, method, words) -> {
            HOOKS.add((Runnable) words[1]);
            return null;
        });
        while (true) {
            byte[] input;
            try {
                input = requests.readNBytes(requests.readInt());
            } catch (EOFException nobodyAsks) {
                return;
            }
            System.setIn(new ByteArrayInputStream(input));
            String[] words = new String[requests.readInt()];
            for (int at = 0; at < words.length; at++) {
                words[at] = new String(requests.readNBytes(requests.readInt()), ofArguments());
            }
            Answer answer = run(words);
            answers.writeInt(answer.code());
            for (byte[] text : new byte[][] {answer.out(), answer.err()}) {
                answers.writeInt(text.length);
                answers.write(text);
            }
            answers.writeInt((int) clientsLeft());
            answers.flush();
        }
    }

    /** Calls a setter of Kafka's `Exit` with an object that has this one method. */
    private static void onExit(String setter, InvocationHandler handler) {
        try {
            Class<?> exit = Class.forName(EXIT.stream().filter(ToolServer::exists).findFirst().orElseThrow());
            Method found = Stream.of(exit.getMethods())
                    .filter(method -> method.getName().equals(setter))
                    .findFirst()
                    .orElseThrow();
            Class<?>[] kind = found.getParameterTypes();
            found.invoke(null, Proxy.newProxyInstance(ToolServer.class.getClassLoader(), kind, handler));
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(failure);
        }
    }

    private static boolean exists(String name) {
        return ToolServer.class.getResource("/" + name.replace('.', '/') + ".class") != null;
    }

    private static long clientsLeft() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.isAlive() && CLIENTS.stream().anyMatch(thread.getName()::startsWith))
                .count();
    }

    private static Charset ofArguments() {
        return Charset.forName(System.getProperty("sun.jnu.encoding"));
    }

    private static Answer run(String[] words) {
        OUT.reset();
        ERR.reset();
        ended = null;
        HOOKS.clear();
        String[] arguments = new String[words.length - 1];
        System.arraycopy(words, 1, arguments, 0, arguments.length);
        int code = 0;
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (ended == null) {
                System.err.print("Exception in thread \"main\" ");
                failure.getCause().printStackTrace();
                code = FAILED;
            }
        } catch (ReflectiveOperationException noTool) {
            System.err.println("no such tool: " + noTool);
            code = FAILED;
        }
        Answer said = ended == null ? answer(code) : ended;
        OUT.reset();
        ERR.reset();
        for (Runnable hook : List.copyOf(HOOKS)) {
            try {
                hook.run();
            } catch (RuntimeException failure) {
                failure.printStackTrace();
            }
        }
        Answer last = answer(said.code());
        return new Answer(said.code(), joined(said.out(), last.out()), joined(said.err(), last.err()));
    }

    private static byte[] joined(byte[] first, byte[] second) {
        byte[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }

    private static Object end(int code) {
        if (ended == null) {
            ended = answer(code);
        }
        throw new Ended();
    }

    private static Answer answer(int code) {
        System.out.flush();
        System.err.flush();
        return new Answer(code, OUT.toByteArray(), ERR.toByteArray());
    }
}
