import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;

/**
 * Kafka's own TLS of a listener that requires client certificates.
 *
 * A line has the trusted certificates, the private key and the certificates of the listener, each in PEM and
 * then in Base64. Answers are the port on which it accepts one client, and then `+` with the name in the
 * client's certificate in Base64, or `-` with the reason of the refusal.
 */
public class TrustProbe {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            Map<String, Object> configs = new HashMap<>();
            configs.put("ssl.protocol", "TLSv1.3");
            configs.put("ssl.cipher.suites", List.of());
            configs.put("ssl.enabled.protocols", List.of("TLSv1.2", "TLSv1.3"));
            configs.put("ssl.truststore.type", "PEM");
            configs.put("ssl.truststore.certificates", password(words[0]));
            configs.put("ssl.keystore.type", "PEM");
            configs.put("ssl.keystore.key", password(words[1]));
            configs.put("ssl.keystore.certificate.chain", password(words[2]));
            try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
                factory.configure(configs);
                serve(factory.sslContext());
            }
        }
    }

    private static void serve(SSLContext context) throws Exception {
        InetAddress loopback = InetAddress.getLoopbackAddress();
        try (SSLServerSocket server =
                (SSLServerSocket) context.getServerSocketFactory().createServerSocket(0, 1, loopback)) {
            server.setNeedClientAuth(true);
            System.out.println(server.getLocalPort());
            try (SSLSocket client = (SSLSocket) server.accept()) {
                client.startHandshake();
                String name = client.getSession().getPeerPrincipal().getName();
                byte[] text = name.getBytes(StandardCharsets.UTF_8);
                client.getOutputStream().write('+');
                System.out.println("+" + Base64.getEncoder().encodeToString(text));
            } catch (SSLException refused) {
                System.out.println("-" + refused.getMessage().replace('\n', ' '));
            }
        }
    }

    private static Password password(String word) {
        return new Password(new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8));
    }
}
