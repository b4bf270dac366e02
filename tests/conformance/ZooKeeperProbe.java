import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletionStage;
import kafka.admin.ConfigCommand;
import kafka.network.RequestChannel;
import kafka.security.authorizer.AclAuthorizer;
import kafka.security.authorizer.AuthorizerUtils;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;
import org.apache.zookeeper.server.persistence.FileTxnLog;
import org.apache.zookeeper.server.persistence.TxnLog.TxnIterator;

/**
 * A ZooKeeper on a port, written by Kafka 2.8's own AclAuthorizer and ConfigCommand, until its input ends.
 * The first line is the port, and that of TLS. A line is a verb and fields in Base64; the answer is one line, `error ...`
 * for an exception. `open` names a chroot, which all after it speak of.
 */
public class ZooKeeperProbe {
    private final File folder;
    private final String address;
    private final ZooKeeper zookeeper;
    private final ZooKeeperServer server;
    private String chroot = "";
    private AclAuthorizer authorizer = null;

    private ZooKeeperProbe(File folder, String address, ZooKeeperServer server) throws Exception {
        this.folder = folder;
        this.address = address;
        this.server = server;
        this.zookeeper = new ZooKeeper(address, 30000, event -> { });
    }

    private static String decode(String field) {
        return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }

    private static String encode(String text) {
        return text.isEmpty() ? "." : Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static ResourcePattern pattern(List<String> f, int i) {
        return new ResourcePattern(ResourceType.valueOf(f.get(i)), f.get(i + 1), PatternType.valueOf(f.get(i + 2)));
    }

    private String open(List<String> f) throws Exception {
        if (authorizer != null)
            authorizer.close();
        chroot = f.get(0);
        if (!chroot.isEmpty() && zookeeper.exists(chroot, false) == null)
            zookeeper.create(chroot, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        Map<String, Object> configs = new HashMap<>();
        configs.put("zookeeper.connect", address + chroot);
        configs.put("super.users", f.get(1));
        configs.put("allow.everyone.if.no.acl.found", f.get(2));
        authorizer = new AclAuthorizer();
        authorizer.configure(configs);
        return "ok";
    }

    private String create(List<String> f) throws Exception {
        List<AclBinding> bindings = new ArrayList<>();
        for (int i = 0; i < f.size(); i += 7)
            bindings.add(new AclBinding(pattern(f, i), new AccessControlEntry(f.get(i + 3), f.get(i + 4),
                AclOperation.valueOf(f.get(i + 5)), AclPermissionType.valueOf(f.get(i + 6)))));
        StringBuilder out = new StringBuilder();
        for (CompletionStage<? extends AclCreateResult> stage : authorizer.createAcls(null, bindings))
            out.append(stage.toCompletableFuture().get().exception().isPresent() ? "no " : "yes ");
        return out.toString().trim();
    }

    private String ask(List<String> f) throws Exception {
        AuthorizableRequestContext context = AuthorizerUtils.sessionToRequestContext(new RequestChannel.Session(
            SecurityUtils.parseKafkaPrincipal(f.get(0)), InetAddress.getByName(f.get(1))));
        Action action = new Action(AclOperation.valueOf(f.get(2)),
            new ResourcePattern(ResourceType.valueOf(f.get(3)), f.get(4), PatternType.LITERAL), 1, true, true);
        return authorizer.authorize(context, List.of(action)).get(0).name();
    }

    private String acls() {
        TreeSet<String> lines = new TreeSet<>();
        authorizer.acls(AclBindingFilter.ANY).forEach(b -> lines.add(String.join(" ",
            b.pattern().resourceType().name(), b.pattern().name(), b.pattern().patternType().name(),
            b.entry().principal(), b.entry().host(), b.entry().operation().name(),
            b.entry().permissionType().name())));
        return encode(String.join("\n", lines));
    }

    /** Kafka's own tool, which writes SCRAM credentials and quotas below /config/users. */
    private String configure(List<String> f) {
        List<String> all = new ArrayList<>(List.of("--zookeeper", address + chroot));
        all.addAll(f);
        ConfigCommand.main(all.toArray(new String[0]));
        return "ok";
    }

    /** A node as nobody of Kafka would write it; the third field, if any, is `user:password` who may read it. */
    private String node(List<String> f) throws Exception {
        String path = chroot;
        for (String name : f.get(0).substring(1).split("/")) {
            path += "/" + name;
            if (zookeeper.exists(path, false) == null)
                zookeeper.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }
        zookeeper.setData(path, Base64.getDecoder().decode(f.get(1)), -1);
        if (f.size() > 2)
            zookeeper.setACL(path, List.of(new ACL(ZooDefs.Perms.READ, new Id(f.get(2), f.get(3)))), -1);
        return "ok";
    }

    private void describe(String path, List<String> lines) throws Exception {
        Stat stat = new Stat();
        byte[] data = server.getZKDatabase().getData(path.isEmpty() ? "/" : path, stat, null);
        lines.add(path + " " + stat.getCzxid() + " " + stat.getMzxid() + " " + stat.getPzxid() + " "
            + stat.getVersion() + " " + stat.getCversion() + " " + stat.getAversion() + " " + Arrays.hashCode(data));
        for (String name : new TreeSet<>(server.getZKDatabase().getChildren(path.isEmpty() ? "/" : path, null, null)))
            describe(path + "/" + name, lines);
    }

    /** Every node of the whole server with all that a write to it would change. */
    private String tree() throws Exception {
        List<String> lines = new ArrayList<>();
        describe("", lines);
        return encode(String.join("\n", lines));
    }

    /** The kinds of transactions in the server's own log after this one. */
    private String transactions(long after) throws Exception {
        StringBuilder out = new StringBuilder();
        TxnIterator iterator = new FileTxnLog(new File(folder, "version-2")).read(after + 1);
        for (boolean more = iterator.getHeader() != null; more; more = iterator.next())
            out.append(iterator.getHeader().getType()).append(' ');
        iterator.close();
        return out.toString().trim();
    }

    private String answer(String verb, List<String> f) throws Exception {
        switch (verb) {
            case "open": return open(f);
            case "create": return create(f);
            case "ask": return ask(f);
            case "acls": return acls();
            case "configure": return configure(f);
            case "node": return node(f);
            case "tree": return tree();
            case "zxid": return "" + server.getZKDatabase().getDataTreeLastProcessedZxid();
            case "transactions": return transactions(Long.parseLong(f.get(0)));
            default: throw new IllegalArgumentException(verb);
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Exit.setExitProcedure((code, message) -> { throw new IllegalStateException("exit " + code + " " + message); });
        File folder = new File(arguments[0]);
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress("127.0.0.1", 0), 100);
        ZooKeeperServer server = new ZooKeeperServer(folder, folder, 2000);
        factory.startup(server);
        ServerCnxnFactory secure = ServerCnxnFactory.createFactory();
        secure.configure(new InetSocketAddress("127.0.0.1", 0), 100, true);
        secure.startup(server, false);
        ZooKeeperProbe probe = new ZooKeeperProbe(folder, "127.0.0.1:" + factory.getLocalPort(), server);
        out.println(factory.getLocalPort() + " " + secure.getLocalPort());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            List<String> fields = new ArrayList<>();
            for (int i = 1; i < words.length; i++)
                fields.add(words[i].equals(".") ? "" : decode(words[i]));
            try {
                out.println(probe.answer(words[0], fields));
            } catch (Exception | Error e) {
                out.println("error " + e);
            }
        }
        System.exit(0);
    }
}
