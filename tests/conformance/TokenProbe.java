import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.common.message.CreateDelegationTokenRequestData;
import org.apache.kafka.common.message.CreateDelegationTokenResponseData;
import org.apache.kafka.common.message.ExpireDelegationTokenRequestData;
import org.apache.kafka.common.message.ExpireDelegationTokenResponseData;
import org.apache.kafka.common.message.RenewDelegationTokenRequestData;
import org.apache.kafka.common.message.RenewDelegationTokenResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.DelegationTokenRecord;
import org.apache.kafka.common.metadata.RemoveDelegationTokenRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.ControllerRequestContext;
import org.apache.kafka.controller.DelegationTokenControlManager;
import org.apache.kafka.image.DelegationTokenImage;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.DelegationTokenData;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.security.DelegationTokenManager;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Kafka's own rules for delegation tokens, on a clock that stands, behind lines of fields between tabs.
 *
 * <pre>
 * new      secret, or `-` for none; maximum lifetime; expiry time; level of metadata.version; milliseconds
 * time     milliseconds
 * create   principal; owner type; owner name; maximum lifetime; renewers as type, name ...
 * renew    principal; which token; period
 * expire   principal; which token; period
 * sweep
 * describe principal; owners between `,` or `*` for all; numbers of the tokens that the principal may
 *          DESCRIBE, between `,`; owners whose tokens it may DESCRIBE_TOKENS, between `,`
 * loss     level
 * </pre>
 *
 * A principal is `type:name`. A token is the number of the `create` that made it (counted from 0 after
 * `new`, refused ones not), or `x` and an HMAC in hex. `new` and `time` have no reply; the others reply the
 * error, then what the request answers, then each record in hex.
 */
public class TokenProbe {
    private DelegationTokenControlManager manager;
    private DelegationTokenCache cache;
    private MetadataVersion version;
    private byte[] secret;
    private long nowMs;
    private final List<byte[]> hmacs = new ArrayList<>();
    private final List<String> ids = new ArrayList<>();
    private final Map<String, DelegationTokenData> tokens = new TreeMap<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TokenProbe probe = new TokenProbe();
        for (String line; (line = in.readLine()) != null; ) {
            List<String> reply = probe.answer(line.split("\t", -1));
            if (reply != null) out.println(String.join("\t", reply));
        }
        out.flush();
    }

    private List<String> answer(String[] fields) throws Exception {
        switch (fields[0]) {
            case "new": begin(fields); return null;
            case "time": nowMs = Long.parseLong(fields[1]); return null;
            case "create": return create(fields);
            case "renew": return renew(fields);
            case "expire": return expire(fields);
            case "sweep": {
                Object swept = manager.sweepExpiredDelegationTokens();
                return reply(Errors.NONE.code(), records(swept), (Object) response(swept));
            }
            case "describe": return describe(fields);
            default: return loss(Short.parseShort(fields[1]));
        }
    }

    private void begin(String[] fields) throws Exception {
        secret = fields[1].equals("-") ? null : fields[1].getBytes(StandardCharsets.UTF_8);
        version = MetadataVersion.fromFeatureLevel(Short.parseShort(fields[4]));
        nowMs = Long.parseLong(fields[5]);
        cache = new DelegationTokenCache(Set.of());
        hmacs.clear();
        ids.clear();
        tokens.clear();
        // both the builder and the clock are closed to other packages
        Class<?> type = Class.forName("org.apache.kafka.controller.DelegationTokenControlManager$Builder");
        Constructor<?> made = type.getDeclaredConstructor();
        made.setAccessible(true);
        Object builder = made.newInstance();
        set(builder, "setTokenCache", DelegationTokenCache.class, cache);
        set(builder, "setDelegationTokenSecretKey", String.class, fields[1].equals("-") ? null : fields[1]);
        set(builder, "setDelegationTokenMaxLifeMs", long.class, Long.parseLong(fields[2]));
        set(builder, "setDelegationTokenExpiryTimeMs", long.class, Long.parseLong(fields[3]));
        Method build = type.getDeclaredMethod("build");
        build.setAccessible(true);
        manager = (DelegationTokenControlManager) build.invoke(builder);
        Field time = DelegationTokenControlManager.class.getDeclaredField("time");
        time.setAccessible(true);
        time.set(manager, Proxy.newProxyInstance(
            TokenProbe.class.getClassLoader(), new Class<?>[] {Time.class}, (proxy, method, arguments) -> nowMs));
    }

    private static void set(Object builder, String name, Class<?> type, Object value) throws Exception {
        Method method = builder.getClass().getDeclaredMethod(name, type);
        method.setAccessible(true);
        method.invoke(builder, value);
    }

    private static KafkaPrincipal principal(String text) {
        String[] parts = text.split(":", 2);
        return new KafkaPrincipal(parts[0], parts[1]);
    }

    private static ControllerRequestContext context(String text) {
        return new ControllerRequestContext(new RequestHeaderData(), principal(text), OptionalLong.empty());
    }

    /** ControllerResult is not public. */
    @SuppressWarnings("unchecked")
    private static <T> T part(String name, Object result) throws Exception {
        Method method = result.getClass().getSuperclass() == Object.class
            ? result.getClass().getDeclaredMethod(name)
            : result.getClass().getSuperclass().getDeclaredMethod(name);
        method.setAccessible(true);
        return (T) method.invoke(result);
    }

    private static <T> T response(Object result) throws Exception {
        return part("response", result);
    }

    private static List<ApiMessageAndVersion> records(Object result) throws Exception {
        return part("records", result);
    }

    private byte[] hmac(String which) {
        return which.startsWith("x") ? HexFormat.of().parseHex(which.substring(1))
            : hmacs.get(Integer.parseInt(which));
    }

    private List<String> create(String[] fields) throws Exception {
        CreateDelegationTokenRequestData request = new CreateDelegationTokenRequestData()
            .setOwnerPrincipalType(fields[2]).setOwnerPrincipalName(fields[3])
            .setMaxLifetimeMs(Long.parseLong(fields[4]));
        for (int i = 5; i + 1 < fields.length; i += 2) {
            request.renewers().add(new CreateDelegationTokenRequestData.CreatableRenewers()
                .setPrincipalType(fields[i]).setPrincipalName(fields[i + 1]));
        }
        Object result = manager.createDelegationToken(context(fields[1]), request, version);
        CreateDelegationTokenResponseData made = response(result);
        if (made.errorCode() == Errors.NONE.code()) {
            hmacs.add(made.hmac());
            ids.add(made.tokenId());
        }
        return reply(made.errorCode(), records(result), made.principalType(), made.principalName(),
            made.tokenRequesterPrincipalType(), made.tokenRequesterPrincipalName(), made.issueTimestampMs(),
            made.expiryTimestampMs(), made.maxTimestampMs(), made.tokenId(), HexFormat.of().formatHex(made.hmac()));
    }

    private List<String> renew(String[] fields) throws Exception {
        RenewDelegationTokenRequestData request = new RenewDelegationTokenRequestData()
            .setHmac(hmac(fields[2])).setRenewPeriodMs(Long.parseLong(fields[3]));
        Object result = manager.renewDelegationToken(context(fields[1]), request, version);
        RenewDelegationTokenResponseData answer = response(result);
        return reply(answer.errorCode(), records(result), answer.expiryTimestampMs());
    }

    private List<String> expire(String[] fields) throws Exception {
        ExpireDelegationTokenRequestData request = new ExpireDelegationTokenRequestData()
            .setHmac(hmac(fields[2])).setExpiryTimePeriodMs(Long.parseLong(fields[3]));
        Object result = manager.expireDelegationToken(context(fields[1]), request, version);
        ExpireDelegationTokenResponseData answer = response(result);
        return reply(answer.errorCode(), records(result), answer.expiryTimestampMs());
    }

    private List<String> describe(String[] fields) {
        Optional<List<KafkaPrincipal>> owners = fields[2].equals("*") ? Optional.empty()
            : Optional.of(Arrays.stream(fields[2].split(",")).map(TokenProbe::principal).toList());
        Set<String> allowedTokens = new java.util.HashSet<>();
        for (String number : fields[3].split(",")) {
            if (!number.isEmpty()) allowedTokens.add(ids.get(Integer.parseInt(number)));
        }
        Set<String> allowedOwners = Set.copyOf(new java.util.HashSet<>(Arrays.asList(fields[4].split(","))));
        List<String> found = new ArrayList<>();
        for (TokenInformation token : cache.tokens()) {
            if (DelegationTokenManager.filterToken(principal(fields[1]), owners, token,
                    allowedTokens::contains, owner -> allowedOwners.contains(owner.toString()))) {
                found.add(token.tokenId());
            }
        }
        found.sort(null);
        return reply(Errors.NONE.code(), List.of(), found.toArray());
    }

    private List<String> loss(short level) {
        List<String> told = new ArrayList<>();
        RecordListWriter writer = new RecordListWriter();
        new DelegationTokenImage(tokens).write(writer, new ImageWriterOptions.Builder(
            MetadataVersion.fromFeatureLevel(level)).setLossHandler(e -> told.add(e.getMessage())).build());
        List<String> lines = new ArrayList<>(List.of(told.isEmpty() ? "-" : told.get(0)));
        writer.records().forEach(record -> lines.add(hex(record)));
        return lines;
    }

    private List<String> reply(short code, List<ApiMessageAndVersion> records, Object... fields) {
        List<String> line = new ArrayList<>(List.of(Errors.forCode(code).name()));
        for (Object field : fields) line.add(String.valueOf(field));
        for (ApiMessageAndVersion record : records) {
            line.add(hex(record));
            replay(record);
        }
        return line;
    }

    private void replay(ApiMessageAndVersion record) {
        if (record.message() instanceof DelegationTokenRecord made) {
            DelegationTokenData data = DelegationTokenData.fromRecord(made);
            tokens.put(made.tokenId(), data);
            byte[] hmac = DelegationTokenManager.createHmac(made.tokenId(), new SecretKeySpec(secret, "HmacSHA512"));
            // without the SCRAM keys, which take their time and change no answer
            cache.updateCache(new DelegationToken(data.tokenInformation(), hmac), Map.of());
        } else if (record.message() instanceof RemoveDelegationTokenRecord gone) {
            tokens.remove(gone.tokenId());
            cache.removeCache(gone.tokenId());
        }
    }

    private static String hex(ApiMessageAndVersion record) {
        MetadataRecordSerde serde = new MetadataRecordSerde();
        ObjectSerializationCache sizes = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(serde.recordSize(record, sizes));
        serde.write(record, sizes, new ByteBufferAccessor(buffer));
        return HexFormat.of().formatHex(buffer.array());
    }
}
