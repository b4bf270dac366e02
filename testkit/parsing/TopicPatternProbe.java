import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** A line is an expression and names, in Base64; so is the answer: `!`, or a 1 or 0 for each name that matches or not. */
public class TopicPatternProbe {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                Pattern pattern = Pattern.compile(text(words[0]));
                for (int i = 1; i < words.length; i++)
                    out.append(pattern.matcher(text(words[i])).matches() ? '1' : '0');
            } catch (PatternSyntaxException e) {
                out.append('!');
            }
            out.append('\n');
        }
        System.out.print(out);
    }

    private static String text(String word) {
        return new String(Base64.getDecoder().decode(word.substring(1)), StandardCharsets.UTF_8);
    }
}
