import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** A line is a JAAS text in Base64; the answer is `error`, or module, flag and sorted options in Base64. */
public class JaasProbe {
    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            String text = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
            StringBuilder out = new StringBuilder();
            try {
                JaasContext context =
                    JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(text)));
                AppConfigurationEntry entry = context.configurationEntries().get(0);
                String flag = entry.getControlFlag().toString().replaceAll(".* ", "");
                out.append(encode(entry.getLoginModuleName())).append(' ').append(flag);
                for (Map.Entry<String, ?> option : new TreeMap<>(entry.getOptions()).entrySet())
                    out.append(' ').append(encode(option.getKey())).append('=')
                        .append(encode((String) option.getValue()));
            } catch (IllegalArgumentException | NullPointerException e) {
                out.setLength(0);
                out.append("error");
            }
            System.out.println(out);
        }
    }
}
