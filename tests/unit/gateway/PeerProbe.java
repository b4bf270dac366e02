import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Inet6Address;
import java.net.InetAddress;

/** A line is an address in hexadecimal digits and a scope id; the answer is its `getHostAddress()`. */
public class PeerProbe {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split(" ");
            byte[] address = new byte[parts[0].length() / 2];
            for (int at = 0; at < address.length; at++)
                address[at] = (byte) Integer.parseInt(parts[0].substring(2 * at, 2 * at + 2), 16);
            int scope = Integer.parseInt(parts[1]);
            InetAddress plain = InetAddress.getByAddress(address);
            InetAddress made = scope > 0 && plain instanceof Inet6Address
                ? Inet6Address.getByAddress(null, address, scope) : plain;
            System.out.println(made.getHostAddress());
        }
    }
}
