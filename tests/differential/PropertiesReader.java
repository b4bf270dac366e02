import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeMap;

/** Reads texts, one a line as hexadecimal UTF-16, with java.util.Properties and prints what it found. */
public final class PropertiesReader {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var hex = HexFormat.of();
        var out = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            var text = new String(hex.parseHex(line), StandardCharsets.UTF_16BE);
            var properties = new Properties();
            try {
                properties.load(new StringReader(text));
            } catch (IllegalArgumentException malformed) {
                out.append("malformed\n");
                continue;
            }
            var sorted = new TreeMap<String, String>();
            for (String key : properties.stringPropertyNames()) {
                sorted.put(hex.formatHex(key.getBytes(StandardCharsets.UTF_16BE)),
                        hex.formatHex(properties.getProperty(key).getBytes(StandardCharsets.UTF_16BE)));
            }
            out.append("read");
            sorted.forEach((key, value) -> out.append(' ').append(key).append('=').append(value));
            out.append('\n');
        }
        System.out.print(out);
    }
}
