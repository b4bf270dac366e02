import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** Reads patterns, one a line as hexadecimal UTF-16, and prints whether java.util.regex accepts each. */
public final class PatternCompiler {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            var pattern = new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_16BE);
            try {
                Pattern.compile(pattern);
                System.out.println("accepted");
            } catch (PatternSyntaxException malformed) {
                System.out.println("refused");
            }
        }
    }
}
