import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * A line is a question, the answer one line: `principal HEX` reads a principal, `written TYPE NAME TOKEN` writes one
 * (texts in hex), `changed LEVEL LEVEL` says whether a downgrade may lose records, `forwardable` names the APIs.
 */
public class NodeProbe {
    private static final HexFormat HEX = HexFormat.of();
    private static final DefaultKafkaPrincipalBuilder BUILDER = new DefaultKafkaPrincipalBuilder(null, null);

    private static String hex(String text) {
        return HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(String hex) {
        return new String(HEX.parseHex(hex), StandardCharsets.UTF_8);
    }

    private static String read(String data) {
        try {
            KafkaPrincipal found = BUILDER.deserialize(HEX.parseHex(data));
            return hex(found.getPrincipalType()) + "," + hex(found.getName()) + "," + found.tokenAuthenticated();
        } catch (RuntimeException e) {
            return "error";
        }
    }

    private static String answer(String[] words) {
        switch (words[0]) {
            case "principal":
                return read(words[1].substring(1));
            case "written":
                return HEX.formatHex(BUILDER.serialize(
                    new KafkaPrincipal(text(words[1].substring(1)), text(words[2].substring(1)),
                        Boolean.parseBoolean(words[3]))));
            case "changed":
                return Boolean.toString(MetadataVersion.checkIfMetadataChanged(
                    MetadataVersion.fromFeatureLevel(Short.parseShort(words[1])),
                    MetadataVersion.fromFeatureLevel(Short.parseShort(words[2]))));
            default:
                return Arrays.stream(ApiKeys.values()).filter(key -> key.forwardable)
                    .map(key -> Short.toString(key.id)).collect(Collectors.joining(","));
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; )
            System.out.println(answer(line.split(" ")));
    }
}
