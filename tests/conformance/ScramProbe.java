import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMessages;

/** A line is a kind and a message in Base64; the answer is `error` or the message's parts, each in Base64. */
public class ScramProbe {
    private static String encode(byte[] bytes) {
        return "[" + Base64.getEncoder().encodeToString(bytes) + "]";
    }

    private static String encode(String text) {
        return encode(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String read(String kind, byte[] message) throws Exception {
        switch (kind) {
            case "client-first":
                ScramMessages.ClientFirstMessage first = new ScramMessages.ClientFirstMessage(message);
                return encode(first.authorizationId()) + encode(ScramFormatter.username(first.saslName()))
                    + encode(first.nonce()) + encode(first.clientFirstMessageBare())
                    + first.extensions().tokenAuthenticated();
            case "server-first":
                ScramMessages.ServerFirstMessage server = new ScramMessages.ServerFirstMessage(message);
                return encode(server.nonce()) + encode(server.salt()) + server.iterations();
            case "client-final":
                ScramMessages.ClientFinalMessage last = new ScramMessages.ClientFinalMessage(message);
                return encode(last.clientFinalMessageWithoutProof()) + encode(last.nonce()) + encode(last.proof());
            default:
                ScramMessages.ServerFinalMessage end = new ScramMessages.ServerFinalMessage(message);
                return end.error() == null ? "v" + encode(end.serverSignature()) : "e" + encode(end.error());
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            String answer;
            try {
                answer = read(parts[0], Base64.getDecoder().decode(parts[1]));
            } catch (javax.security.sasl.SaslException e) {
                answer = "error";
            }
            System.out.println(answer);
        }
    }
}
