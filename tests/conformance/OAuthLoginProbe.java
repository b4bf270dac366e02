import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import javax.security.auth.callback.Callback;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/**
 * A line is the properties file of a client in Base64. The answer is `token` and the token that the client got from
 * its provider, or `settings` if the client refuses the file, or `refused` if it gets no token, with the reason.
 */
public class OAuthLoginProbe {
    private static String answer(String file) throws Exception {
        Properties given = new Properties();
        given.load(new StringReader(file));
        OAuthBearerLoginCallbackHandler handler = new OAuthBearerLoginCallbackHandler();
        try {
            ConfigDef declared = new ConfigDef();
            SaslConfigs.addClientSaslSupport(declared);
            Map<String, ?> values = new AbstractConfig(declared, given, false).values();
            handler.configure(values, "OAUTHBEARER", JaasContext.loadClientContext(values).configurationEntries());
        } catch (Exception e) {
            return "settings " + encode(String.valueOf(e.getMessage()));
        }
        OAuthBearerTokenCallback asked = new OAuthBearerTokenCallback();
        try {
            handler.handle(new Callback[] {asked});
        } catch (Exception e) {
            return "refused " + encode(String.valueOf(e.getMessage()));
        } finally {
            handler.close();
        }
        return asked.token() == null
            ? "refused " + encode(asked.errorCode() + ": " + asked.errorDescription())
            : "token " + encode(asked.token().value());
    }

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            System.out.println(answer(new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8)));
            System.out.flush();
        }
    }
}
