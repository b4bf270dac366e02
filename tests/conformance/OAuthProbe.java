import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslException;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator;
import org.apache.kafka.common.security.oauthbearer.JwtValidatorException;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerClientInitialResponse;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslServer;
import org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler;

/**
 * `message` and `extensions`: a line is an initial response in Base64; `secured <key>=<value>...` and `unsecured <option>=<value>...`:
 * a line is a token in Base64. The answer is what Kafka read in it, or `error`, or `raised` for an error that the
 * caller does not expect.
 */
public class OAuthProbe {
    private static final String MECHANISM = "OAUTHBEARER";
    private static BrokerJwtValidator secured;
    private static OAuthBearerUnsecuredValidatorCallbackHandler unsecured;

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String message(byte[] data) throws SaslException {
        OAuthBearerClientInitialResponse read = new OAuthBearerClientInitialResponse(data);
        StringBuilder out = new StringBuilder();
        out.append(encode(read.tokenValue())).append(' ').append(encode(read.authorizationId()));
        for (Map.Entry<String, String> each : new TreeMap<>(read.extensions().map()).entrySet())
            out.append(' ').append(encode(each.getKey())).append('=').append(encode(each.getValue()));
        out.append(' ').append(Base64.getEncoder().encodeToString(read.toBytes()));
        return out.toString();
    }

    /** A server whose handler accepts every token as `alice`, and refuses the extensions that begin with `bad`. */
    private static String extensions(byte[] data) {
        OAuthBearerSaslServer server = new OAuthBearerSaslServer(new AuthenticateCallbackHandler() {
            public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) { }
            public void close() { }
            public void handle(Callback[] callbacks) {
                for (Callback callback : callbacks)
                    if (callback instanceof OAuthBearerValidatorCallback each)
                        each.token(new Anybody());
                    else if (callback instanceof OAuthBearerExtensionsValidatorCallback each)
                        for (String name : each.inputExtensions().map().keySet())
                            if (name.startsWith("bad"))
                                each.error(name, "no " + name);
                            else
                                each.valid(name);
            }
        });
        try {
            server.evaluateResponse(data);
            return "proven " + encode(server.getAuthorizationID());
        } catch (SaslAuthenticationException e) {
            return "refused " + encode(e.getMessage());
        } catch (SaslException e) {
            return "error";
        }
    }

    private static class Anybody implements OAuthBearerToken {
        public String value() { return "token"; }
        public java.util.Set<String> scope() { return java.util.Set.of(); }
        public long lifetimeMs() { return Long.MAX_VALUE; }
        public String principalName() { return "alice"; }
        public Long startTimeMs() { return null; }
    }

    private static String shown(OAuthBearerToken token) {
        StringBuilder out = new StringBuilder("token ");
        out.append(encode(token.principalName())).append(' ').append(token.lifetimeMs());
        for (String scope : new TreeSet<>(token.scope()))
            out.append(' ').append(encode(scope));
        return out.toString();
    }

    private static String unsecuredAnswer(String token) throws Exception {
        OAuthBearerValidatorCallback callback = new OAuthBearerValidatorCallback(token);
        unsecured.handle(new Callback[] {callback});
        if (callback.token() != null)
            return shown(callback.token());
        return "error " + callback.errorStatus() + ' ' + (callback.errorScope() == null ? "" : encode(callback.errorScope()));
    }

    private static String answer(String kind, byte[] data) throws Exception {
        if (kind.equals("message"))
            return message(data);
        if (kind.equals("extensions"))
            return extensions(data);
        String token = new String(data, StandardCharsets.UTF_8);
        return kind.equals("secured") ? shown(secured.validate(token)) : unsecuredAnswer(token);
    }

    private static Map<String, Object> typed(Map<String, String> texts) {
        Map<String, Object> values = new HashMap<>(texts);
        values.computeIfPresent("sasl.oauthbearer.clock.skew.seconds", (key, text) -> Integer.valueOf((String) text));
        values.computeIfPresent(
            "sasl.oauthbearer.expected.audience", (key, text) -> Arrays.asList(((String) text).split(",")));
        values.putIfAbsent("sasl.oauthbearer.scope.claim.name", "scope");
        values.putIfAbsent("sasl.oauthbearer.sub.claim.name", "sub");
        return values;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i < arguments.length; i++)
            options.put(arguments[i].substring(0, arguments[i].indexOf('=')), arguments[i].substring(arguments[i].indexOf('=') + 1));
        AppConfigurationEntry entry = new AppConfigurationEntry(
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
            AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, options);
        if (arguments[0].equals("secured")) {
            secured = new BrokerJwtValidator();
            secured.configure(typed(options), MECHANISM, List.of(entry));
        }
        if (arguments[0].equals("unsecured")) {
            unsecured = new OAuthBearerUnsecuredValidatorCallbackHandler();
            unsecured.configure(Map.of(), MECHANISM, List.of(entry));
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            String out;
            try {
                out = answer(arguments[0], Base64.getDecoder().decode(line));
            } catch (SaslException | JwtValidatorException e) {
                out = "error";
            } catch (RuntimeException e) {
                out = "raised";
            }
            System.out.println(out);
        }
    }
}
