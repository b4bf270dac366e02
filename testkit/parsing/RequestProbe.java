import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/**
 * Reads frames, each behind its length, as a broker's network thread does, and writes for each, behind its length:
 * 0 and why it is refused, or 1, a byte, and what was read, written anew without the tagged fields that nobody knows.
 * The byte says of a Produce whether its records are in a transaction: 1 yes, 0 no, 2 nobody can say.
 */
public class RequestProbe {
    private static final byte REFUSED = 0, READ = 1, NO = 0, YES = 1, UNREADABLE = 2;
    private static final Map<Class<?>, List<Field>> NESTED = new HashMap<>();

    /** Returns the fields of a message that may hold messages. */
    private static List<Field> nested(Class<?> type) {
        return NESTED.computeIfAbsent(type, each -> {
            List<Field> found = new ArrayList<>();
            for (Field field : each.getDeclaredFields()) {
                boolean holds = Message.class.isAssignableFrom(field.getType())
                        || Collection.class.isAssignableFrom(field.getType());
                if (holds && !Modifier.isStatic(field.getModifiers()) && !field.getName().startsWith("_")) {
                    field.setAccessible(true);
                    found.add(field);
                }
            }
            return found;
        });
    }

    private static void forgetUnknownTags(Object value) throws IllegalAccessException {
        if (value instanceof Message) {
            ((Message) value).unknownTaggedFields().clear();
            for (Field field : nested(value.getClass()))
                forgetUnknownTags(field.get(value));
        } else if (value instanceof Collection) {
            for (Object item : (Collection<?>) value)
                if (item instanceof Message)
                    forgetUnknownTags(item);
        }
    }

    private static byte[] written(Message message, short version) throws IllegalAccessException {
        forgetUnknownTags(message);
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static byte transactional(AbstractRequest request) {
        if (!(request instanceof ProduceRequest))
            return NO;
        try {
            return RequestUtils.hasTransactionalRecords((ProduceRequest) request) ? YES : NO;
        } catch (RuntimeException e) {
            return UNREADABLE;
        }
    }

    private static byte[] refused(String reason) {
        byte[] why = String.valueOf(reason).getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + why.length).put(REFUSED).put(why).array();
    }

    private static byte[] read(byte[] frame) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(frame);
        RequestHeader header;
        AbstractRequest request;
        try {
            header = RequestHeader.parse(buffer);
            RequestContext context = new RequestContext(header, "probe", InetAddress.getLoopbackAddress(),
                    KafkaPrincipal.ANONYMOUS, new ListenerName("PROBE"), SecurityProtocol.PLAINTEXT,
                    ClientInformation.EMPTY, false);
            request = context.parseRequest(buffer).request;
        } catch (RuntimeException e) {
            return refused(e.getMessage() + ": " + e.getCause());
        }
        byte flag = transactional(request);
        byte[] head;
        byte[] body;
        try {
            head = written(header.data(), header.headerVersion());
            body = written(request.data(), header.apiVersion());
        } catch (RuntimeException e) {
            // bytes that are no UTF-8 were read as three bytes each, and are too long now
            return refused(e.getMessage());
        }
        return ByteBuffer.allocate(2 + head.length + body.length).put(READ).put(flag).put(head).put(body).array();
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 20));
        while (true) {
            byte[] frame;
            try {
                frame = new byte[in.readInt()];
            } catch (EOFException e) {
                return;
            }
            in.readFully(frame);
            byte[] answer = read(frame);
            out.writeInt(answer.length);
            out.write(answer);
            if (in.available() == 0)
                out.flush();
        }
    }
}
