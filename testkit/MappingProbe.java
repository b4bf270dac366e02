import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;
import javax.security.auth.x500.X500Principal;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.security.auth.AuthenticationContext;
import org.apache.kafka.common.security.auth.PlaintextAuthenticationContext;
import org.apache.kafka.common.security.auth.SaslAuthenticationContext;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.auth.SslAuthenticationContext;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * A line is a question, its words in Base64 after the first; so is the answer, one word for each name asked about.
 *
 * `ssl RULES NAME...` and `kerberos REALM COUNT RULE... NAME...` map names; `x500 DER...` writes names;
 * `plaintext`, `tls RULES DER|-` and `sasl MECHANISM REALM RULE ID` build a principal, `Type:name`.
 * `!rules` stands for rules that are refused, `!none` for no rule that applies, `!error` for any other failure.
 */
public class MappingProbe {
    private static String text(String word) {
        return new String(bytes(word), StandardCharsets.UTF_8);
    }

    private static byte[] bytes(String word) {
        return Base64.getDecoder().decode(word.substring(1));
    }

    private static String encoded(String text) {
        return "=" + Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private interface Mapping {
        String of(String name) throws Exception;
    }

    private static List<String> map(Mapping mapping, List<String> names) {
        List<String> out = new ArrayList<>();
        for (String name : names) {
            try {
                out.add(encoded(mapping.of(text(name))));
            } catch (java.io.IOException e) {
                out.add("!none");
            } catch (Exception e) {
                out.add("!error");
            }
        }
        return out;
    }

    private static <T> T stub(Class<T> type, String method, Object result) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, called, args) -> {
            if (called.getName().equals("getMechanismName"))
                return "GSSAPI".equals(method) ? "GSSAPI" : "PLAIN";
            if (result instanceof Exception)
                throw (Exception) result;
            return result;
        }));
    }

    private static String build(DefaultKafkaPrincipalBuilder builder, AuthenticationContext context) {
        try {
            return encoded(builder.build(context).toString());
        } catch (RuntimeException e) {
            return "!error";
        }
    }

    private static List<String> answer(List<String> words) throws Exception {
        InetAddress here = InetAddress.getLoopbackAddress();
        switch (words.get(0)) {
            case "ssl":
                SslPrincipalMapper mapper;
                try {
                    mapper = SslPrincipalMapper.fromRules(text(words.get(1)));
                } catch (RuntimeException e) {
                    return List.of("!rules");
                }
                return map(mapper::getName, words.subList(2, words.size()));
            case "kerberos":
                int end = 3 + Integer.parseInt(words.get(2));
                List<String> rules = new ArrayList<>();
                words.subList(3, end).forEach(word -> rules.add(text(word)));
                KerberosShortNamer namer;
                try {
                    namer = KerberosShortNamer.fromUnparsedRules(text(words.get(1)), rules);
                } catch (RuntimeException e) {
                    return List.of("!rules");
                }
                return map(name -> namer.shortName(KerberosName.parse(name)), words.subList(end, words.size()));
            case "x500":
                List<String> names = new ArrayList<>();
                for (String word : words.subList(1, words.size())) {
                    try {
                        names.add(encoded(new X500Principal(bytes(word)).getName()));
                    } catch (RuntimeException e) {
                        names.add("!error");
                    }
                }
                return names;
            case "plaintext":
                return List.of(build(new DefaultKafkaPrincipalBuilder(null, null),
                    new PlaintextAuthenticationContext(here, "PLAINTEXT")));
            case "tls":
                Object peer = words.get(2).equals("-")
                    ? new SSLPeerUnverifiedException("none") : new X500Principal(bytes(words.get(2)));
                return List.of(build(
                    new DefaultKafkaPrincipalBuilder(null, SslPrincipalMapper.fromRules(text(words.get(1)))),
                    new SslAuthenticationContext(stub(SSLSession.class, "", peer), here, "SSL")));
            default:
                SaslServer server = stub(SaslServer.class, text(words.get(1)), text(words.get(4)));
                KerberosShortNamer shortener =
                    KerberosShortNamer.fromUnparsedRules(text(words.get(2)), List.of(text(words.get(3))));
                return List.of(build(new DefaultKafkaPrincipalBuilder(shortener, null),
                    new SaslAuthenticationContext(server, SecurityProtocol.SASL_PLAINTEXT, here, "SASL")));
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; )
            System.out.println(String.join(" ", answer(Arrays.asList(line.split(" ")))));
    }
}
