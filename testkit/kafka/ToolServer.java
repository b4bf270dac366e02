import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.Charset;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the tools that it reads from standard input, one after the other, in one JVM.
 *
 * <p>A request: the number of texts and each text, which are the main class and its arguments. The answer: the
 * exit code, standard output, standard error, and the number of clients that the tool left open, since they end
 * with a JVM of its own. A text is its length in four bytes, and bytes.
 */
public final class ToolServer {
    private static final int FAILED = 1;

    /** How Kafka's clients name their threads, which live until they are closed. */
    private static final String CLIENT = "kafka-";

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

    private record Answer(int code, byte[] out, byte[] err) {}

    private ToolServer() {}

    /** Serves until standard input ends. */
    public static void main(String[] none) throws IOException {
        DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers =
                new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        System.setIn(InputStream.nullInputStream());
        // before a logger or Scala's console takes hold of them
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, hook) -> {});
        while (true) {
            String[] words;
            try {
                words = new String[requests.readInt()];
            } catch (EOFException nobodyAsks) {
                return;
            }
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

    private static long clientsLeft() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.isAlive() && thread.getName().startsWith(CLIENT))
                .count();
    }

    private static Charset ofArguments() {
        return Charset.forName(System.getProperty("sun.jnu.encoding"));
    }

    private static Answer run(String[] words) {
        OUT.reset();
        ERR.reset();
        ended = null;
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
        return ended == null ? answer(code) : ended;
    }

    private static void end(int code) {
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
