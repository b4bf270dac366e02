import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;
import kafka.network.RequestChannel;
import kafka.security.auth.Acl;
import kafka.security.auth.Operation$;
import kafka.security.auth.Resource;
import kafka.security.auth.SimpleAclAuthorizer;
import kafka.security.authorizer.AuthorizerUtils;
import kafka.security.authorizer.AuthorizerWrapper;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Kafka 2.8's SimpleAclAuthorizer on a ZooKeeper in the same process, and its AuthorizerWrapper.
 * A line is a verb and fields in Base64 (`-` is null); the answer is one line, `error ...` for an exception.
 */
@SuppressWarnings("deprecation")
public class LegacyProbe {
    private final String connect;
    private final ZooKeeper zookeeper;
    private SimpleAclAuthorizer authorizer = null;
    private AuthorizerWrapper wrapper = null;

    private LegacyProbe(String connect) throws Exception {
        this.connect = connect;
        this.zookeeper = new ZooKeeper(connect, 30000, event -> { });
    }

    private static String decode(String field) {
        return field.equals("-") ? null : new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }

    private static String encode(String text) {
        return text.isEmpty() ? "." : Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static KafkaPrincipal principal(String text) {
        return SecurityUtils.parseKafkaPrincipal(text);
    }

    private static scala.collection.immutable.Set<Acl> acls(String json) {
        return Acl.fromBytes(json.getBytes(StandardCharsets.UTF_8)).toSet();
    }

    private static Resource resource(String text) {
        return Resource.fromString(text);
    }

    private static String dump(scala.collection.immutable.Map<Resource, scala.collection.immutable.Set<Acl>> all) {
        TreeSet<String> lines = new TreeSet<>();
        CollectionConverters.asJava(all).forEach((resource, acls) ->
            CollectionConverters.asJava(acls).forEach(acl -> lines.add(resource + " " + acl)));
        return encode(String.join("\n", lines));
    }

    private static List<AclBinding> bindings(List<String> fields) {
        List<AclBinding> found = new ArrayList<>();
        for (int i = 0; i < fields.size(); i += 7)
            found.add(new AclBinding(
                new ResourcePattern(ResourceType.valueOf(fields.get(i)), fields.get(i + 1),
                    PatternType.valueOf(fields.get(i + 2))),
                new AccessControlEntry(fields.get(i + 3), fields.get(i + 4),
                    AclOperation.valueOf(fields.get(i + 5)), AclPermissionType.valueOf(fields.get(i + 6)))));
        return found;
    }

    private static List<AclBindingFilter> filters(List<String> fields) {
        List<AclBindingFilter> found = new ArrayList<>();
        for (int i = 0; i < fields.size(); i += 7)
            found.add(new AclBindingFilter(
                new ResourcePatternFilter(ResourceType.valueOf(fields.get(i)), fields.get(i + 1),
                    PatternType.valueOf(fields.get(i + 2))),
                new AccessControlEntryFilter(fields.get(i + 3), fields.get(i + 4),
                    AclOperation.valueOf(fields.get(i + 5)), AclPermissionType.valueOf(fields.get(i + 6)))));
        return found;
    }

    private static String text(AclBinding binding) {
        return String.join(" ", binding.pattern().resourceType().name(), binding.pattern().name(),
            binding.pattern().patternType().name(), binding.entry().principal(), binding.entry().host(),
            binding.entry().operation().name(), binding.entry().permissionType().name());
    }

    private static String texts(Iterable<AclBinding> bindings) {
        TreeSet<String> lines = new TreeSet<>();
        bindings.forEach(binding -> lines.add(text(binding)));
        return encode(String.join("\n", lines));
    }

    private String open(String superUsers, String everyone) {
        if (wrapper != null)
            wrapper.close();
        Map<String, Object> configs = new HashMap<>();
        configs.put("zookeeper.connect", connect);
        if (superUsers != null)
            configs.put("super.users", superUsers);
        if (everyone != null)
            configs.put("allow.everyone.if.no.acl.found", everyone);
        authorizer = new SimpleAclAuthorizer();
        wrapper = new AuthorizerWrapper(authorizer);
        wrapper.configure(configs);
        return "ok";
    }

    private String answer(String verb, List<String> f) throws Exception {
        switch (verb) {
            case "open":
                return open(f.get(0), f.get(1));
            case "clear":
                for (Resource resource : CollectionConverters.asJava(authorizer.getAcls()).keySet())
                    authorizer.removeAcls(resource);
                return "ok";
            case "add":
                authorizer.addAcls(acls(f.get(0)), resource(f.get(1)));
                return "ok";
            case "remove":
                return "" + authorizer.removeAcls(acls(f.get(0)), resource(f.get(1)));
            case "drop":
                return "" + authorizer.removeAcls(resource(f.get(0)));
            case "ask":
                return "" + authorizer.authorize(
                    new RequestChannel.Session(principal(f.get(0)), InetAddress.getByName(f.get(1))),
                    Operation$.MODULE$.fromString(f.get(2)), resource(f.get(3)));
            case "bytype":
                return "" + wrapper.authorizeByResourceType(
                    AuthorizerUtils.sessionToRequestContext(new RequestChannel.Session(principal(f.get(0)),
                        InetAddress.getByName(f.get(1)))),
                    AclOperation.valueOf(f.get(2)), ResourceType.valueOf(f.get(3)));
            case "node":
                return encode(new String(zookeeper.getData(f.get(0), false, null), StandardCharsets.UTF_8));
            case "plant":
                return "" + acls(f.get(0)).size();
            case "acls":
                return dump(authorizer.getAcls());
            case "of":
                return dump(authorizer.getAcls(principal(f.get(0))));
            case "at":
                return encode(CollectionConverters.asJava(authorizer.getAcls(resource(f.get(0)))).stream()
                    .map(Acl::toString).sorted().collect(Collectors.joining("\n")));
            case "create":
                return results(wrapper.createAcls(null, bindings(f)));
            case "delete":
                return deleted(wrapper.deleteAcls(null, filters(f)));
            case "list":
                return texts(wrapper.acls(filters(f).get(0)));
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private static String results(List<? extends CompletionStage<AclCreateResult>> stages) throws Exception {
        StringBuilder out = new StringBuilder();
        for (CompletionStage<AclCreateResult> stage : stages)
            out.append(stage.toCompletableFuture().get().exception().isPresent() ? "no " : "yes ");
        return out.toString().trim();
    }

    private static String deleted(List<? extends CompletionStage<AclDeleteResult>> stages) throws Exception {
        List<String> out = new ArrayList<>();
        for (CompletionStage<AclDeleteResult> stage : stages) {
            AclDeleteResult result = stage.toCompletableFuture().get();
            List<AclBinding> gone = new ArrayList<>();
            result.aclBindingDeleteResults().forEach(each -> gone.add(each.aclBinding()));
            out.add(result.exception().isPresent() ? "no" : texts(gone));
        }
        return String.join(" ", out);
    }

    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress("127.0.0.1", 0), 100);
        factory.startup(new ZooKeeperServer(folder, folder, 2000));
        LegacyProbe probe = new LegacyProbe("127.0.0.1:" + factory.getLocalPort());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            List<String> fields = new ArrayList<>();
            for (int i = 1; i < words.length; i++)
                fields.add(words[i].equals(".") ? "" : decode(words[i]));
            try {
                System.out.println(probe.answer(words[0], fields));
            } catch (Exception e) {
                System.out.println("error " + e.getClass().getSimpleName());
            }
        }
        System.out.flush();
        System.exit(0);
    }
}
